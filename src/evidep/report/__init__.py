"""From a packet to what a person looks at."""
