"""The five file tools, as models see them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from toolkeel import Key, Scope, Text, Tool, ToolContext, ToolError, tool

from . import editing, finding, reading, writing
from .beneath import Place, closing
from .charset import SAMPLE, UTF_8, detect
from .editing import Edit
from .listing import Listed, Lister
from .names import Names, PathRefused, fold, globs
from .patterns import Glob
from .searching import Query, Searcher
from .settings import Settings
from .shown import count, reason, shown, size
from .stopping import Watch
from .workspaces import Workspaces, keys, root_keys

_PIECE = 1 << 20


def _file_keys(arguments: Mapping[str, Any], scope: Scope) -> Iterable[Key]:
    """The file that a call is about."""
    return keys(str(arguments["path"]), scope.workspaces)


def _tree_keys(arguments: Mapping[str, Any], scope: Scope) -> Iterable[Key]:
    """The file or folder that a call goes through: everything below overlaps."""
    path = str(arguments.get("path") or "")
    return keys(path, scope.workspaces) if path else root_keys(scope.workspaces)


class FileTools:
    """The tools of one configuration.

    Args:
        settings: names and limits.
        by_kernel: whether ``openat2`` may be used; the default is whether it works here.
    """

    def __init__(self, settings: Settings, *, by_kernel: bool | None = None) -> None:
        self._settings = settings
        self._names = Names(settings)
        self._skipped = globs(settings.skipped_folders)
        self._by_kernel = by_kernel

    def tools(self) -> tuple[Tool, ...]:
        """The tools, made once for all sessions: the workspace folders come with each call."""
        return (
            tool(effect="read", group="fs", reads=_file_keys)(self.file_read),
            # a file that is overwritten is lost, unlike the text that an edit quotes
            tool(effect="destructive", group="fs", writes=_file_keys)(self.file_write),
            tool(effect="write", group="fs", writes=_file_keys)(self.file_edit),
            tool(effect="read", group="fs", reads=_tree_keys)(self.file_list),
            tool(effect="read", group="fs", reads=_tree_keys)(self.code_search),
        )

    def file_read(
        self,
        context: ToolContext,
        path: str,
        offset: int = 1,
        limit: int = 2000,
        numbers: bool = False,
        start_byte: int | None = None,
    ) -> Text:
        """Read a text file of the workspace, or a part of it.

        The answer is the text as it is. When it is only a part, a first line in brackets says which and how to read on.
        For a file that is no text the answer says what it is.

        Args:
            path: The file: relative to the workspace, or absolute inside it; FOLDER:PATH where there are several.
            offset: The first line to read, from 1; negative counts from the end (-100: the last 100 lines).
            limit: How many lines to read at most.
            numbers: Put its number before each line.
            start_byte: Begin at this byte instead of a line: for reading on in a very long line or a huge file.
        """
        workspaces = self._workspaces(context)
        with workspaces.find(path) as place:
            opened, status = place.open_file()
            with closing(opened):
                wanted = reading.Wanted(offset, limit, self._settings.read_bytes, start_byte, numbers)
                return reading.read(opened, status.st_size, workspaces.shown(place), wanted, self._watch())

    def file_write(
        self, context: ToolContext, path: str, content: str, mode: Literal["create", "overwrite", "append"] = "create"
    ) -> str:
        """Write a text file in the workspace, whole. Missing folders are made. For changing a part use file_edit.

        It happens at once or not at all: nobody ever sees half of the content.

        Args:
            path: The file: relative to the workspace, or absolute inside it; FOLDER:PATH where there are several.
            content: The text of the file, written as it is in UTF-8.
            mode: create refuses when the file exists; overwrite replaces it; append puts the content at its end.
        """
        _refuse_surrogates(content, "content")
        length = len(content.encode())
        if length > self._settings.write_bytes:
            raise ToolError(
                f"the content has {size(length)}, more than the {size(self._settings.write_bytes)} of one call",
                where=shown(path),
                remedy="Write it in parts, with mode append",
            )
        workspaces = self._workspaces(context)
        with workspaces.find_or_make(path) as place:
            try:
                return self._write(place, workspaces.shown(place), content, mode)
            except BaseException:
                place.remove_made_folders()
                raise

    def file_edit(
        self,
        context: ToolContext,
        path: str,
        old: str = "",
        new: str = "",
        replace_all: bool = False,
        edits: list[Edit] | None = None,
    ) -> str:
        """Replace text in a file of the workspace. What is replaced is quoted exactly and must occur exactly once.

        Give old and new for one replacement, or edits for several, which are made in order, all or none. Encoding, line
        ends and permissions of the file stay as they are.

        Args:
            path: The file: relative to the workspace, or absolute inside it; FOLDER:PATH where there are several.
            old: The exact text to replace, with its blanks; enough of it to occur once.
            new: The text to put in its place; empty deletes.
            replace_all: Replace every occurrence of old instead.
            edits: Several replacements instead of old and new.
        """
        if edits and (old or new):
            raise ToolError("both old and edits are given", remedy="Give old and new, or put all into edits")
        if edits and len(edits) > _MOST_EDITS:
            raise ToolError(f"there are {len(edits)} edits, more than {_MOST_EDITS} in one call")
        wanted = edits or [Edit(old=old, new=new, replace_all=replace_all)]
        for edit in wanted:
            _refuse_surrogates(edit.old, "old")
            _refuse_surrogates(edit.new, "new")
        workspaces = self._workspaces(context)
        with workspaces.find(path, writing=True) as place:
            return self._edit(place, workspaces.shown(place), wanted)

    def file_list(
        self,
        context: ToolContext,
        path: str = "",
        pattern: str = "",
        depth: int | None = None,
        hidden: bool = False,
        limit: int = 500,
    ) -> Text:
        """List a folder of the workspace: sorted, with sizes; folders end in '/', links show where they lead.

        A first line in brackets says how much there is, and what was left out.

        Args:
            path: The folder; everything where it is left out. FOLDER:PATH where there are several workspace folders.
            pattern: Only what this means: *.py at any depth, src/**/*.ts, *.{js,ts}, !*.min.js.
            depth: How many levels to go down, 0 for all; 1 unless there is a pattern, which looks at all levels.
            hidden: Also what begins with a dot.
            limit: How many entries to show at most.
        """
        workspaces = self._workspaces(context)
        wanted = Listed(
            pattern=Glob(pattern) if pattern else None,
            depth=max(depth, 0) if depth is not None else (0 if pattern else 1),
            hidden=hidden,
            limit=max(1, min(limit, self._settings.list_entries)),
        )
        lister = Lister(self._names, self._skips, self._link_leads, self._watch())
        blocks: list[str] = []
        for each in (path,) if path else workspaces.tops:
            with workspaces.find(each) as place:
                name = workspaces.shown(place)
                if not place.is_folder:
                    raise PathRefused("this is not a folder", where=shown(name), remedy="file_read reads a file")
                listing = lister.list(place, workspaces.prefix(place), wanted)
            about = "; ".join([count(len(listing.lines), "entry", "entries"), *listing.notes])
            blocks += [f"[{shown(name)}: {about}]", *listing.lines]
        return Text("\n".join(blocks).encode())

    def code_search(
        self,
        context: ToolContext,
        query: str,
        path: str = "",
        glob: str = "",
        regex: bool = False,
        ignore_case: bool = False,
        around: int = 0,
        limit: int = 100,
        ignored: bool = False,
    ) -> Text:
        """Search the text of the files in the workspace. The answer has a line for each match, as path:line: text.

        What .gitignore leaves out, folders of dependencies, and binary files are not searched. A first line in brackets
        says how much was found and searched, and where the search stopped.

        Args:
            query: The text to look for, as it is; with regex an RE2 expression, which matches within lines.
            path: The folder or file to search; everything where it is left out.
            glob: Only files that this means: *.py at any depth, src/**/*.ts, *.{js,ts}, !*.min.js.
            regex: The query is a regular expression.
            ignore_case: Upper and lower case are the same.
            around: How many lines to show before and after each match.
            limit: How many matches to show at most.
            ignored: Also search what .gitignore leaves out, and folders of dependencies.
        """
        workspaces = self._workspaces(context)
        wanted = Query(
            find=finding.finder(query, regex=regex, ignore_case=ignore_case),
            glob=Glob(glob) if glob else None,
            context=max(0, min(around, _MOST_AROUND)),
            limit=max(1, min(limit, self._settings.search_matches)),
            everything=ignored,
        )
        searcher = Searcher(
            wanted,
            self._names,
            self._skips,
            self._watch(),
            self._settings.search_bytes,
            lambda files: context.progress(files, text=f"{files:,} files searched"),
        )
        for each in (path,) if path else workspaces.tops:
            with workspaces.find(each) as place:
                searcher.search(place, workspaces.prefix(place) if place.is_folder else workspaces.shown(place))
        return Text("\n".join([f"[{searcher.summary()}]", *searcher.lines]).encode())

    def _workspaces(self, context: ToolContext) -> Workspaces:
        return Workspaces(context.workspaces, self._names, by_kernel=self._by_kernel)

    def _watch(self) -> Watch:
        return Watch(self._settings.seconds)

    def _skips(self, name: str) -> bool:
        return self._skipped.match(fold(name)) is not None

    def _link_leads(self, place: Place, path: str) -> str:
        """What there is to say of a link below a folder: nothing where it may be followed."""
        return place.follow_note("/".join((*place.parts, path)))

    def _write(self, place: Place, name: str, content: str, mode: str) -> str:
        old = place.status
        data = content.encode()
        about = f"{count(len(data), 'byte')}, {count(len(content.splitlines()), 'line')}"
        if old is None:
            writing.write(place, [data], new=mode == "create")
            return f"created {shown(name)}: {about}"
        if mode == "create" and not place.is_folder:
            raise ToolError(
                f"the file exists already ({size(old.st_size)})",
                where=shown(name),
                remedy="file_edit changes a part of it; mode overwrite replaces it; mode append adds to its end",
            )
        if mode == "append":
            return self._append(place, name, content)
        writing.write(place, [data])
        return f"overwrote {shown(name)}: {about}, before {count(old.st_size, 'byte')}"

    def _append(self, place: Place, name: str, content: str) -> str:
        opened, status = place.open_file()
        with closing(opened):
            self._refuse_large(status.st_size, name)
            charset = detect(os.pread(opened, SAMPLE, 0), whole=status.st_size <= SAMPLE) if status.st_size else UTF_8
            if charset is None:
                raise ToolError("the file is no text, so text cannot be appended", where=shown(name))
            data = _encoded(charset._replace(mark=b"").encode, content, charset.name, name)
            writing.write(place, _and_then(opened, data), before=status)
        return f"appended {count(len(data), 'byte')} to {shown(name)}: now {count(status.st_size + len(data), 'byte')}"

    def _edit(self, place: Place, name: str, edits: list[Edit]) -> str:
        opened, status = place.open_file()
        with closing(opened):
            self._refuse_large(status.st_size, name)
            try:
                data = b"".join(_pieces(opened))
            except OSError as error:
                raise ToolError(f"cannot be read: {reason(error)}", where=shown(name)) from None
        charset = detect(data, whole=True)
        try:
            text = charset.decode(data) if charset else None
        except UnicodeDecodeError:
            text = None
        if charset is None or text is None or charset.encode(text) != data:
            raise ToolError("the file is no text that could be edited", where=shown(name))
        try:
            edited = editing.apply(text, edits, self._settings.edit_bytes)
        except ToolError as error:
            raise ToolError(error.what, where=shown(name), remedy=error.remedy) from None
        writing.write(place, [_encoded(charset.encode, edited.text, charset.name, name)], before=status)
        lines = [line for each in edited.lines for line in each]
        more = ", …" if len(lines) > _LINES_NAMED else ""
        at = f"line{'s' if len(lines) > 1 else ''} {', '.join(f'{line:,}' for line in lines[:_LINES_NAMED])}{more}"
        return f"edited {shown(name)}: {count(len(lines), 'replacement')}, at {at}"

    def _refuse_large(self, length: int, name: str) -> None:
        if length > self._settings.edit_bytes:
            raise ToolError(
                f"the file has {size(length)}, more than the {size(self._settings.edit_bytes)} of one edit",
                where=shown(name),
            )


_MOST_AROUND = 20
_MOST_EDITS = 200
_LINES_NAMED = 20


def _refuse_surrogates(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{what} is not valid Unicode: it holds half of a surrogate pair") from None


def _encoded(encode: Callable[[str], bytes], text: str, charset: str, name: str) -> bytes:
    try:
        return encode(text)
    except UnicodeEncodeError as error:
        raise ToolError(
            f"the file is {charset}, which has no {shown(error.object[error.start])}",
            where=shown(name),
            remedy="Use other characters, or overwrite the file, which makes it UTF-8",
        ) from None


def _pieces(opened: int) -> Iterator[bytes]:
    while piece := os.read(opened, _PIECE):
        yield piece


def _and_then(opened: int, data: bytes) -> Iterator[bytes]:
    yield from _pieces(opened)
    yield data
