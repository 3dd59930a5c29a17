"""Plans, runs and watched loops as pages and traces."""

import html as _html

from . import _core
from ._core.report import html_page, write_html, write_trace

__all__ = ["html_page", "write_html", "write_trace"]


def _frame(self):
    """The page of docs/report.md, inline: a notebook shows it in a frame of its own."""
    page = _html.escape(html_page(self), quote=True)
    return f'<iframe srcdoc="{page}" style="width: 100%; height: 42rem; border: 0" loading="lazy"></iframe>'


for _class in ("Plan", "Profile", "WatchReport"):
    if hasattr(_core, _class):
        getattr(_core, _class)._repr_html_ = _frame
