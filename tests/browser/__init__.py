"""Tests in a real browser: JupyterLab as people see it.

One JupyterLab server and one Chromium serve the whole folder; every test gets a home folder and
kernels of its own. A test asks for ``open_notebook`` and drives what it gets::

    def test_a_reply_is_shown(open_notebook):
        book = open_notebook("%load_ext aios_nb", "%aios chat echo")
        book.run_all()                                  # waits; a failed cell fails the test
        chat = book.output(1)                           # a Playwright locator
        chat.get_by_role("textbox", name="Message").fill("hello")
        chat.get_by_role("textbox", name="Message").press("Enter")
        expect(chat.get_by_role("log")).to_contain_text("hello")
        book.shot("chat-hello", chat)                   # a picture for people, into the artifacts

``Notebook`` (notebook.py) has the rest:

- ``run(i)``, ``run_all()``, ``start(i)``, ``start_all()``: with and without waiting for the end;
  ``done(i)`` waits later, ``busy()`` waits until the kernel works, ``idle()`` until it rests.
- ``output(i)`` and ``text(i)``: what a cell shows. ``sources()``: the cells' texts;
  ``has(i, source)`` waits for one.
  ``add(source)``: one cell more, at the end; gives its number.
- ``value("expression")``: of the kernel's main thread, through JSON. ``rpc(method, **params)``: of
  the notebook's node, from outside, also while a cell is busy.
- ``save()``, ``saved()``, ``reload()`` (saves first), ``restart()`` (as the menu does, dialog
  included), ``interrupt()``. ``printed(i, "text")``: wait until the saved HTML of a cell has it.
- ``dark()``, ``light()``, ``narrow()``, ``wide()``, ``resize(w, h)``, ``shot(name, what)``.

The test fails at its end when the page has logged an error, thrown one, or asked for anything that
is not on this server; when the server has dropped messages; when the node has logged an error of
its own. ``book.forgive("text")`` names one that is part of the test. Playwright's ``expect`` does
the waiting; its ceiling is 30 s here. A failed test leaves pictures and logs, ``FAILED-…``, behind.

``findings(locator)`` of audit.py lists what no stranger's text may leave in a page. ``Chat`` of
chats.py has words for the parts of a chat, and ``AGENTS`` is a cell with agents to talk to.

A second ``open_notebook`` in a test is a second kernel in the same home: two nodes that find each
other. ``open_notebook(..., face="notebook")`` opens Notebook 7.

Pictures go to ``$AIOS_ARTIFACTS``, else to ``artifacts`` in this folder. To look at a widget
without a test::

    python -m tests.browser.look "%load_ext aios_nb" "%aios hub" --dark --to hub.png

(``--do FILE`` runs Python with ``book`` before the picture is taken.)

Without a browser the folder is skipped, loudly; with ``AIOS_REQUIRE_BROWSER=1`` it fails.
"""
