"""paths_fixture.py BASE: makes BASE/ws (the workspace), BASE/ws-evil and BASE/outside, as paths.jsonl expects."""

import os
import pathlib
import socket
import sys

base = pathlib.Path(sys.argv[1])
ws, outside = base / "ws", base / "outside"
for folder in (
    ws / "dir" / "deep",
    ws / ".git",
    ws / "...",
    ws / "Case",
    ws / "plugins" / "p1",
    outside / "sub",
    base / "ws-evil",
):
    folder.mkdir(parents=True, exist_ok=True)
for name in (
    "a.txt",
    "dir/b.txt",
    "sp ace.txt",
    "ünï.txt",
    "-rf",
    ".../x.txt",
    "Case/File.txt",
    "a..b.txt",
    "..hidden",
    "new\nline.txt",
    "%2e%2e",
    "back\\slash.txt",
    "colon:x.txt",
    "~",
):
    (ws / name).write_text("ok")
(ws / ".env").write_text("TOKEN=SECRETENV")
(ws / ".git" / "config").write_text("[core]")
for path in (outside / "secret.txt", outside / "sub" / "s.txt", base / "ws-evil" / "secret.txt"):
    path.write_text("SECRET")
for name, target in {
    "link_in": "a.txt",
    "dir/link_up_in": "../a.txt",
    "link_abs_in": str(ws / "a.txt"),
    "dir_in": "dir",
    "link_out": str(outside / "secret.txt"),
    "link_out_rel": "../outside/secret.txt",
    "dirlink_out": str(outside),
    "link_chain": "link_out",
    "link_loop": "link_loop",
    "dangling": str(outside / "new.txt"),
    "link_proc": f"/proc/self/root{outside}/secret.txt",
    "link_cwd": "/proc/self/cwd",
    "link_root": "/",
    "plugins/p1/skills": str(outside),
}.items():
    os.symlink(target, ws / name)
os.link(outside / "secret.txt", ws / "hard")
os.mkfifo(ws / "fifo")
with socket.socket(socket.AF_UNIX) as s:
    s.bind(str(ws / "sock"))
