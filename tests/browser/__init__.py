"""Tests in a real browser: JupyterLab as people see it.

One JupyterLab server and one Chromium serve the whole folder; every test gets a home folder and
kernels of its own. A test asks for ``open_notebook`` and drives what it gets::

    def test_a_reply_is_shown(open_notebook):
        book = open_notebook("%load_ext aios_nb", "%aios chat echo")
        book.run_all()                                  # waits; a failed cell fails the test
        chat = book.output(1)                           # a Playwright locator
        chat.get_by_role("textbox").fill("hello")
        chat.get_by_role("textbox").press("Enter")
        expect(chat.get_by_role("log")).to_contain_text("hello")
        book.shot("chat-hello", chat)                   # a picture for people, into the artifacts

``Notebook`` (notebook.py) has the rest:

- ``run(i)``, ``run_all()``, ``start(i)``, ``start_all()``: with and without waiting for the end;
  ``done(i)`` waits later, ``busy()`` waits until the kernel works, ``idle()`` until it rests.
- ``output(i)`` and ``text(i)``: what a cell shows. ``sources()``: the cells' texts.
  ``add(source)``: one cell more, at the end; gives its number.
- ``value("expression")``: of the kernel's main thread, through JSON. ``rpc(method, **params)``: of
  the notebook's node, from outside, also while a cell is busy.
- ``save()``, ``reload()`` (saves first), ``restart()`` (as the menu does, dialog included),
  ``interrupt()``.
- ``dark()``, ``light()``, ``narrow()``, ``wide()``, ``shot(name, what)``.

The test fails at its end when the page has logged an error, thrown one, asked for anything that is
not on this server, or when the server has dropped messages. ``book.forgive("text")`` names an error
that is part of the test. Waiting is done by Playwright's ``expect``; its ceiling is 30 s here.

A second ``open_notebook`` in a test is a second kernel in the same home: two nodes that find each
other. ``open_notebook(..., face="notebook")`` opens Notebook 7.

Pictures go to ``$AIOS_ARTIFACTS``, else to ``artifacts`` in this folder, failures too. To look at
a widget without a test::

    python -m tests.browser.look "%load_ext aios_nb" "%aios hub" --dark --to hub.png

(``--do FILE`` runs Python with ``book`` before the picture is taken.)

Without a browser the folder is skipped, loudly; with ``AIOS_REQUIRE_BROWSER=1`` it fails.
"""
