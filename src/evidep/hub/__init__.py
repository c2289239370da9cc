"""The only networked code of the package: audits as pull requests, and what is published as Spaces and models.

Nothing is sent without an explicit yes: every function plans first, and sends only where it is told to.
"""
