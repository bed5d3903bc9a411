"""The chat room's door: the ``chat.*`` methods of the contract, and ``aios.message``.

Each method takes the authenticated caller and its parameters, and gives the result's fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aios_nb import params as p
from aios_nb.access import Principal, owner_of
from aios_nb.blobs import BlobStore
from aios_nb.chat.calls import MAX_HOPS, Call, Request, check_route, check_size
from aios_nb.chat.endings import Ended, interrupted, outcome_of, with_ids
from aios_nb.chat.exchange import Exchange
from aios_nb.chat.export import export
from aios_nb.chat.listening import LogWatch, ReplyStream, StoredStream
from aios_nb.chat.log import Conversation, Draft, DuplicateCall, Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.recovery import recover
from aios_nb.chat.retention import DAY_MS, Retention
from aios_nb.chat.runs import Run
from aios_nb.config import Limits
from aios_nb.envelope import (
    SENDER_ID,
    Content,
    Delta,
    Envelope,
    Event,
    Kind,
    Outcome,
    Party,
    Routing,
    Sender,
    Status,
    Task,
    new_id,
    now_iso,
)
from aios_nb.errors import Cancelled, InvalidParams, NoSuchAgent, NotAllowed, RpcError
from aios_nb.ports import Finder, Notices, Target
from aios_nb.store import Store

_MENTION = re.compile(r"(?<![^\s(\[{,;:!?\"'])@([a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{12,32})?)")


class Chat:
    """Conversations on this node."""

    def __init__(
        self, node_id: str, store: Store, finder: Finder, blobs: BlobStore, limits: Limits
    ) -> None:
        self._node_id = node_id
        self._finder = finder
        self._blobs = blobs
        self._log = Log(store)
        self._reader = Reader(self._log)
        self._retention = Retention(self._log, owner_of(node_id).id, limits)
        self.exchange = Exchange(node_id, self._log, self._reader, finder, limits)

    # Talking -----------------------------------------------------------------------------

    async def open(self, principal: Principal, params: p.Open) -> dict[str, Any]:
        agents = [self._finder.resolve(ref, principal).id for ref in params.agents]
        conversation = self._log.new(principal.id, agents, title=params.title or "")
        await self._log.save(conversation)
        return {"conversation": conversation.id}

    async def send(self, principal: Principal, params: p.Send) -> dict[str, Any]:
        request = self._request(principal, params)
        taken = await self.exchange.take(request)
        if isinstance(taken, Call) and params.wait:
            await taken.runs[0].settled()
        taken = await self._committed(taken, request)
        if isinstance(taken, list):
            return _ended_result(taken[0])
        run = taken.runs[0]
        return _result(run) if params.wait else _accepted(run)

    async def stream(self, principal: Principal, params: p.Stream) -> Notices:
        if params.agent is None:
            if params.message_id is None or params.text is not None:
                raise InvalidParams("chat.stream takes agent and text, or a message_id to go on")
            found = self.exchange.find(principal, params.message_id)
        else:
            request = self._request(principal, params)
            found = await self._committed(await self.exchange.take(request), request)
        if isinstance(found, list):
            return _stored_stream(found[0], params.offset)
        return ReplyStream(found.runs[0], params.offset, _result)

    async def _committed(
        self, taken: Call | list[Ended], request: Request
    ) -> Call | list[Ended]:
        """The same call when it is in the log; or, if its id was used before, how that ended."""
        if isinstance(taken, Call):
            try:
                await taken.committed()
            except DuplicateCall:
                return self.exchange.repeat_of(taken, request)
        return taken

    def _request(self, principal: Principal, params: p.Send | p.Stream) -> Request:
        if params.agent is None or params.text is None:
            raise InvalidParams("chat.stream takes agent and text, or a message_id to go on")
        conversation = None
        if params.conversation is not None:
            conversation = self._log.visible(params.conversation, principal)
        return Request(
            principal,
            self._voice(principal),
            (self._finder.resolve(params.agent, principal),),
            params.text,
            params.data,
            self._blobs.check(params.files, principal) if params.files else (),
            conversation,
            params.message_id,
            params.deadline_s,
        )

    async def post(self, principal: Principal, params: p.Post) -> dict[str, Any]:
        conversation = self._log.visible(params.conversation, principal)
        request = Request(
            principal,
            self._voice(principal, params.sender),
            self._addressed(conversation, params.text, principal),
            params.text,
            None,
            self._blobs.check(params.files, principal),
            conversation,
            params.message_id,
            params.deadline_s,
        )
        taken = await self._committed(await self.exchange.take(request), request)
        if isinstance(taken, Call):
            replies = [(run.task.agent, run.task.reply_id) for run in taken.runs]
            message_id, seq = taken.message_id, taken.seq
        else:
            replies = [(ended.agent, ended.reply_id) for ended in taken]
            message_id = params.message_id or ""
            seq = self._reader.seq_of(conversation, message_id)
        return {
            "conversation": conversation.id,
            "message_id": message_id,
            "seq": seq,
            "replies": [{"agent": agent, "reply_id": reply_id} for agent, reply_id in replies],
        }

    def _addressed(
        self, conversation: Conversation, text: str, principal: Principal
    ) -> Sequence[Target]:
        """The agents a message is for: those it mentions, else the conversation's default."""
        found: dict[str, Target] = {}
        for name in _MENTION.findall(text):
            # A conversation's own agents first: one of them may live elsewhere.
            ref = next((a for a in conversation.agents if a.split("@")[0] == name), name)
            try:
                target = self._finder.resolve(ref, principal)
            except NoSuchAgent:
                continue  # an @ that is just text
            found[target.id] = target
        if not found and conversation.agents:
            target = self._finder.resolve(conversation.agents[0], principal)
            found[target.id] = target
        return list(found.values())

    def _voice(self, principal: Principal, sender: str | None = None) -> Sender:
        """Who is speaking. Only the owner (and later bridges, within their prefix) may say who."""
        if sender is None or sender == principal.id:
            return Sender(principal.id, "human")
        if not principal.is_owner:
            raise NotAllowed("you cannot speak for others")
        if not SENDER_ID.fullmatch(sender) or ("@" in sender and not sender.startswith("owner@")):
            raise InvalidParams(f"not a person's sender id: {sender[:80]}")
        return Sender(sender, "human")

    async def answer(self, principal: Principal, params: p.Answer) -> dict[str, Any]:
        run = self._open_run(principal, params.message_id)
        await self.exchange.backstage.answer(run, params.text, self._voice(principal))
        if not params.wait:
            return _accepted(run)
        await run.settled()
        return _result(run)

    async def cancel(self, principal: Principal, params: p.MessageRef) -> dict[str, Any]:
        """Stop what is under way; what is over stays as it ended."""
        found = self.exchange.find(principal, params.message_id)
        if isinstance(found, Call):
            for run in found.runs:
                run.stop(Cancelled("cancelled"))
            for run in found.runs:
                while not run.is_over:
                    await run.changed()
            status = found.runs[0].status
        else:
            status = found[0].status
        return {"message_id": params.message_id, "status": status}

    def _open_run(self, principal: Principal, message_id: str) -> Run:
        found = self.exchange.find(principal, message_id)
        if isinstance(found, Call):
            for run in found.runs:
                if run.question is not None:
                    return run
        raise InvalidParams(f"message {message_id} waits for no answer")

    # Marks on messages ---------------------------------------------------------------------

    async def edit(self, principal: Principal, params: p.Edit) -> dict[str, Any]:
        check_size(params.text)
        conversation = self._with_message(principal, params.conversation, params.message_id)
        if self._reader.sender_of(conversation, params.message_id) != principal.id:
            raise NotAllowed("only who wrote a message may edit it")
        return await self._mark(principal, conversation, Kind.EDIT, params.message_id, params.text)

    async def react(self, principal: Principal, params: p.React) -> dict[str, Any]:
        conversation = self._with_message(principal, params.conversation, params.message_id)
        return await self._mark(
            principal, conversation, Kind.REACTION, params.message_id, params.reaction
        )

    def _with_message(self, principal: Principal, name: str, message_id: str) -> Conversation:
        conversation = self._log.visible(name, principal)
        if message_id not in conversation.ids:
            raise InvalidParams(f"no such message in this conversation: {message_id}")
        return conversation

    async def join(self, principal: Principal, params: p.Member) -> dict[str, Any]:
        """Bring an agent or a person in; they see what comes from now on."""
        conversation = self._log.visible(params.conversation, principal)
        who = self._member(params.who, principal)
        agents, members = list(conversation.agents), set(conversation.members)
        if "@" not in who or who.startswith("owner@"):
            members.add(who)
        elif who not in agents:
            agents.append(who)
        await self._log.change(conversation, agents=agents, members=members)
        return await self._mark(principal, conversation, Kind.JOIN, who)

    async def leave(self, principal: Principal, params: p.Member) -> dict[str, Any]:
        conversation = self._log.visible(params.conversation, principal)
        who = self._member(params.who, principal, conversation)
        if who not in conversation.agents and who not in conversation.members:
            raise InvalidParams(f"{params.who} is not in this conversation")
        await self._log.change(
            conversation,
            agents=[agent for agent in conversation.agents if agent != who],
            members=conversation.members - {who},
        )
        return await self._mark(principal, conversation, Kind.LEAVE, who)

    def _member(
        self, who: str, principal: Principal, conversation: Conversation | None = None
    ) -> str:
        if ":" in who or who.startswith("owner@"):
            if not SENDER_ID.fullmatch(who):
                raise InvalidParams(f"not a sender id: {who[:80]}")
            return who
        if conversation is not None:
            for agent in conversation.agents:
                if who in (agent, agent.split("@")[0]):
                    return agent
        return self._finder.resolve(who, principal).id

    async def _mark(
        self, principal: Principal, conversation: Conversation, kind: Kind, ref: str, text: str = ""
    ) -> dict[str, Any]:
        draft = Draft(new_id("e"), kind, self._voice(principal), text, ref=ref)
        seq, _ = await self._log.append(conversation, draft)
        return {"conversation": conversation.id, "message_id": draft.message_id, "seq": seq}

    # Conversations as things -----------------------------------------------------------------

    async def rename(self, principal: Principal, params: p.Rename) -> dict[str, Any]:
        conversation = self._log.visible(params.conversation, principal)
        await self._log.change(conversation, title=params.title)
        return {"conversation": conversation.id, "title": conversation.title}

    async def delete(self, principal: Principal, params: p.Conversation) -> dict[str, Any]:
        conversation = self._log.visible(params.conversation, principal)
        if not principal.is_owner and principal.id != conversation.opener:
            raise NotAllowed("only who opened a conversation may delete it")
        for run in self.exchange.runs_in(conversation):
            run.stop(Cancelled("the conversation was deleted"))
            while not run.is_over:
                await run.changed()
        await self._retention.delete(conversation)
        return {"conversation": conversation.id, "deleted": True}

    def export(self, principal: Principal, params: p.Export) -> dict[str, Any]:
        conversation = self._log.visible(params.conversation, principal)
        live = self._live(conversation)
        events: list[Event] = []
        while page := self._reader.history(
            conversation, live, after=events[-1].seq if events else 0
        ):
            events += page
        return export(conversation, events, params.format)

    def _live(self, conversation: Conversation) -> dict[str, Status]:
        """Status by message id, of what is under way."""
        return {run.task.message_id: run.status for run in self.exchange.runs_in(conversation)}

    async def list(self, principal: Principal, params: p.List) -> dict[str, Any]:
        await self._log.save_touched()
        return {"conversations": self._reader.listing(principal, params.limit, params.before)}

    def history(self, principal: Principal, params: p.History) -> dict[str, Any]:
        conversation = self._log.visible(params.conversation, principal)
        live = self._live(conversation)
        events = self._reader.history(conversation, live, params.after, params.limit)
        return {
            "conversation": conversation.id,
            "title": conversation.title,
            "agents": conversation.agents,
            "messages": events,
        }

    def watch(self, principal: Principal, params: p.Watch) -> Notices:
        conversation = None
        if params.conversation is not None:
            conversation = self._log.visible(params.conversation, principal)
        after = self._log.cursor if params.after is None else params.after
        if conversation is not None and params.after is not None:
            after = self._reader.cursor_of(conversation, params.after)
        return LogWatch(self._log, self._reader, conversation, principal, after)

    # The paper's envelope ----------------------------------------------------------------------

    async def message(self, principal: Principal, params: p.Message) -> Envelope:
        """Their request in, their response out, through the very same exchange."""
        request = params.envelope
        if request.message_type != "request":
            raise InvalidParams("aios.message takes a request")
        if request.content.task is None:
            raise InvalidParams("content.task is missing")
        if request.recipient.type != "agent":
            raise InvalidParams("the recipient of a task is an agent")
        target = self._finder.resolve(request.recipient.id, principal)
        routing = request.routing or Routing(max_hops=MAX_HOPS)
        check_route(routing.path, target.id, routing.max_hops)
        ours = Request(
            principal,
            self._voice(principal),
            (target,),
            request.content.task,
            request.content.parameters,
            self._blobs.check(request.content.files or [], principal),
            self._their_conversation(principal, target, request.conversation_id),
            None if request.message_id is None else p.check_id(request.message_id),
            _deadline_s(routing),
            tuple(routing.path),
            routing.max_hops,
        )
        try:
            taken = await self._committed(await self.exchange.take(ours), ours)
        except RpcError:
            if ours.conversation is not None:
                self._log.forget_unstored(ours.conversation)
            raise
        if isinstance(taken, list):
            ended = taken[0]
            result = _ended_result(ended)
            outcome = Outcome(result["text"], result["data"], result["files"])
            conversation_id, reply_id = ended.conversation, ended.reply_id
        else:
            run = taken.runs[0]
            await run.settled()
            outcome = (
                Outcome(run.question, status=Status.INPUT_REQUIRED)
                if run.question is not None
                else outcome_of(run)
            )
            conversation_id, reply_id = run.conversation.id, run.task.reply_id
        return Envelope(
            sender=Party(target.id, "agent", node_id=self._node_id),
            recipient=request.sender,
            message_type="response",
            content=Content(
                result=outcome.text,
                status="success" if outcome.status is Status.DONE else outcome.status.value,
                data=outcome.data,
                files=list(outcome.files) or None,
            ),
            message_id=reply_id,
            conversation_id=conversation_id,
            protocol_version="1.0",
            timestamp=now_iso(),
            routing=Routing(
                path=[*(routing.path or [self._node_id]), target.id], max_hops=routing.max_hops
            ),
        )

    def _their_conversation(
        self, principal: Principal, target: Target, conversation_id: str | None
    ) -> Conversation | None:
        """Their conversation ids are chosen by the sender: a new one opens a conversation."""
        if conversation_id is None:
            return None
        found = self._log.get(conversation_id)
        if found is None:
            p.check_id(conversation_id)
            return self._log.new(principal.id, [target.id], conversation_id=conversation_id)
        return self._log.visible(conversation_id, principal)

    # Life ----------------------------------------------------------------------------------

    async def start(self) -> None:
        await recover(self.exchange, self._log, self._reader)

    async def upkeep(self) -> None:
        """Now and then: write down what is kept in memory."""
        await self._log.save_touched()
        await self.exchange.save_progress()

    async def tidy(self) -> None:
        """Once an hour: throw away what may go."""
        await self._retention.apply()
        await self._blobs.sweep(self._reader.files())

    async def close(self) -> None:
        await self.exchange.close()
        await self._log.save_touched()
        await self.exchange.save_progress()


def _deadline_s(routing: Routing) -> float:
    if routing.deadline_ms is None:
        return 60.0
    if not 0 < routing.deadline_ms <= DAY_MS:
        raise InvalidParams("routing.deadline_ms is between 1 and 86,400,000")
    return routing.deadline_ms / 1000


def _fields(about: Task | Ended, status: Status, outcome: Outcome) -> dict[str, Any]:
    return {
        "conversation": about.conversation,
        "message_id": about.message_id,
        "reply_id": about.reply_id,
        "status": status,
        "text": outcome.text,
        "data": outcome.data,
        "files": outcome.files,
    }


def _accepted(run: Run) -> dict[str, Any]:
    return _fields(run.task, Status.ACCEPTED, Outcome())


def _result(run: Run) -> dict[str, Any]:
    """The result of ``chat.send`` for a run that is over or asks; raises its error."""
    if run.question is not None:
        return _fields(run.task, Status.INPUT_REQUIRED, Outcome(run.question))
    return _fields(run.task, Status.DONE, outcome_of(run))


def _ended_result(ended: Ended) -> dict[str, Any]:
    if ended.outcome is None:
        raise with_ids(ended.error or interrupted(), ended)
    return _fields(ended, Status.DONE, ended.outcome)


def _stored_stream(ended: Ended, offset: int) -> StoredStream:
    delta = None
    if ended.outcome is not None:
        text = ended.outcome.text[offset:]
        delta = Delta(ended.message_id, ended.reply_id, offset, text, done=True)
    return StoredStream(delta, lambda: _ended_result(ended))
