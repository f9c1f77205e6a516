"""How the documentation is built: ``make docs``."""

import os
import sys
from datetime import date
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("MPLBACKEND", None)  # guides show their pictures by the backend of notebooks

import polyplane
from polyplane.datasets import load_pima

sys.path.append(str(Path(__file__).parent / "_extensions"))

project = "Polyplane"
author = "The Polyplane developers"
copyright = f"{date.today().year}, {author}"
version = release = polyplane.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_extensions", "auto_examples/*.ipynb", "**/GALLERY_HEADER.rst"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_math_renderer = "mathml"

# The guides are run when they are built, and show what they print and draw.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_execution_in_temp = True
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


def _has_pima() -> bool:
    """Whether the data of two examples are there, or can be downloaded; otherwise these are shown, but not run."""
    try:
        load_pima()
    except (OSError, ImportError, ValueError):
        return False
    return True


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_" if _has_pima() else "/plot_(?!pima|table)",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "reference_url": {"polyplane": None},
    "doc_module": ("polyplane",),
    "backreferences_dir": None,
    "show_memory": False,
    "min_reported_time": 5,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = f"Polyplane {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["polyplane.css"]
html_show_sourcelink = False
#: Pages without neighbours have no list of them.
html_sidebars = {page: [] for page in ("comparison", "glossary", "install", "migration", "reproduction*", "stability")}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "logo": {"text": html_title},
    "icon_links": [{"name": "PyPI", "url": "https://pypi.org/project/polyplane", "icon": "fa-custom fa-pypi"}],
    "header_links_before_dropdown": 5,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if url := os.environ.get("DOCS_URL"):  # on the site there are pages of other versions to go to: docs/publish.py
    html_theme_options["switcher"] = {
        "json_url": f"{url}/versions.json",
        "version_match": "dev" if ".dev" in version else version,
    }
    html_theme_options["check_switcher"] = False
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher"]
