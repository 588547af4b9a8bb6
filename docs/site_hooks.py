"""What the site needs beyond the pages as they are read in the repository."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import xcorr_app

_ROLE = re.compile(r":(?:class|func|meth|mod):<code>(?:xcorr_app\.)?([\w.]+)</code>")
_WHERE = re.compile(r'title="xcorr_app\.[\w.]*?(\w+)"')
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^):#]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Show the notebook as a page; the notebook itself stays beside it to be downloaded."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        parts = []
        for cell in json.loads(notebook.content_string)["cells"]:
            text = "".join(cell["source"])
            parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
            printed = "".join("".join(each.get("text", "")) for each in cell.get("outputs", ()))
            parts += [f"```text\n{printed}```"] if printed else []
        parts.insert(1, f"[Download the notebook]({Path(notebook.src_uri).name})")
        files.append(File.generated(config, notebook.src_uri.replace(".ipynb", ".md"), content="\n\n".join(parts)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links that leave the pages into links into the repository, or plain text while it has no address."""

    def outside(link: re.Match[str]) -> str:
        text, target, _ = link.groups()
        path = os.path.normpath(os.path.join("docs", os.path.dirname(page.file.src_uri), target))  # noqa: PTH118, PTH120
        within = path.startswith("docs/")
        file = files.get_file_from_path(path.removeprefix("docs/")) if within else None
        if (within and path.endswith((".md", ".ipynb"))) or (file is not None and file.inclusion.is_included()):
            return link[0]
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return _LINK.sub(outside, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Turn the roles of docstrings into names as a user writes them, those of modules into links or plain words."""

    def shown(role: re.Match[str]) -> str:
        name = role[1]
        if target := {"arrays.kinds": "python", "registration.quality": "flags"}.get(name):
            return f'<a href="../{target}/">{target}</a>'
        public = name.split(".")[0] in xcorr_app.__all__
        return f"<code>xc.{name}</code>" if public else f"<em>{name.rpartition('.')[2].replace('_', ' ')}</em>"

    return _WHERE.sub(r'title="\1"', _ROLE.sub(shown, html))
