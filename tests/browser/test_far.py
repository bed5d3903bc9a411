"""A chat with an agent of another process, whose node is killed."""

from __future__ import annotations

import subprocess
import sys

from playwright.sync_api import expect

from tests.browser.chats import LOAD, Chat

FAR = """
import asyncio, sys
import aios_nb as aios

@aios.agent(about="Begins, and does not end")
async def endless(text):
    yield "so far"
    await asyncio.sleep(600)

node = aios.up(name="far")
node.host(endless)
print("up", flush=True)
sys.stdin.read()
"""
MET = """
import time
import aios_nb as aios
while "endless" not in [hit.name for hit in aios.node().search("endless")]:
    time.sleep(0.05)
"""


def test_an_agent_whose_node_was_killed_is_not_shown_as_typing(open_notebook):
    far = subprocess.Popen(
        [sys.executable, "-c", FAR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert far.stdout.readline() == "up\n"
        book = open_notebook(LOAD, MET, "%aios chat endless")
        book.run_all()
        chat = Chat(book, 2)
        chat.say("go")
        expect(chat.last()).to_contain_text("so far")
        expect(chat.last()).to_contain_text("typing")
    finally:
        far.kill()
        far.communicate()
    expect(chat.last()).to_contain_text("connection lost, waiting for far", timeout=60_000)
    expect(chat.last()).not_to_contain_text("typing")
    expect(chat.last().locator(".aios-dots")).to_have_count(0)
    book.shot("chat-far", chat.root)
    chat.button("Stop").click()
    chat.ended("endless", "cancelled")
