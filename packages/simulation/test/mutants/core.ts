/**
 * Mutants of the core: defects that a good engineer could make, each in one place. The simulation must find every one of
 * them. Where a mutant makes a defect again that once was there, `was` says what it did.
 */
import { found } from "./found.ts"
import type { Mutant } from "./Mutant.ts"

const consume = (file: string): string => `core/src/consume/internal/${file}.ts`
const lifecycle = "core/src/consume/Lifecycle.ts"
const policy = (file: string): string => `core/src/policy/${file}.ts`
const message = (file: string): string => `core/src/message/${file}.ts`
const letters = (file: string): string => `operations/src/dead-letters/internal/${file}.ts`

const arriving: ReadonlyArray<Mutant> = [
  {
    name: "deliveries are limited as attempts are",
    file: consume("arrival"),
    from: "if (attempts <= retry.maxDeliveries || group !== undefined) return undefined",
    to: "if (attempts <= retry.maxAttempts || group !== undefined) return undefined",
    was: "Reconnects dead-lettered messages that no handler had seen."
  },
  {
    name: "a codec that is late keeps its message",
    file: consume("arrival"),
    from: "late: () => fail(item, new Failure.DecodeTimeout({ timeout: decodeTimeout }))",
    to: "late: () => {}",
    was: "A codec that never answered kept its message, and three of them stopped the consumer."
  },
  {
    name: "a body that cannot be decoded is retried",
    file: consume("arrival"),
    from: 'refuse(item, RetryPolicy.giveUp(retry, queue, "undecodable", readFailure(error)))',
    to: 'deliveries.conclude(item, Acknowledgement.finalise(undefined, "failure"), readFailure(error))'
  },
  {
    name: "a message that arrives while the consumer stops waits for a handler",
    file: consume("arrival"),
    from: "const refused = flow.wants() ? refusal(delivery, dependencies, wallClock) : Settlement.Release()",
    to: "const refused = refusal(delivery, dependencies, wallClock)"
  },
  {
    name: "a body that is being decoded counts after its connection is lost",
    file: consume("engine"),
    from: "      arrival.forget(item)\n",
    to: "",
    was: "A body that was being decoded when its connection was lost left credit behind."
  }
]

const batching: ReadonlyArray<Mutant> = [
  {
    name: "a timer that wakes for the batch before is not set again",
    file: consume("batcher"),
    from: "    else arm()",
    to: ""
  },
  {
    name: "a probe takes a whole batch",
    file: consume("batcher"),
    from: "const size = Math.min(limit, maxBatchSize)",
    to: "const size = maxBatchSize"
  },
  {
    name: "a lost message still waits for its batch",
    file: consume("batcher"),
    from: "items.delete(item)",
    to: ""
  },
  {
    name: "a suspect runs beside others",
    file: consume("scheduler"),
    from: "if (batches > 0) return undefined",
    to: ""
  },
  {
    name: "others begin beside a suspect",
    file: consume("scheduler"),
    from: "this.isAlone = true",
    to: ""
  },
  {
    name: "the next batch does not begin when one ends",
    file: consume("scheduler"),
    from: "    progress.moved(jobTime())\n    pump()",
    to: "    progress.moved(jobTime())"
  }
]

const running: ReadonlyArray<Mutant> = [
  {
    name: "whether a run was late is asked of its error",
    file: consume("runs"),
    from: 'const isLate = outcome._tag === "Failed" && outcome.isLate === true',
    to: 'const isLate = outcome._tag === "Failed" && (outcome.error as Error).name === "HandlerTimeout"',
    was: "An error that cannot be touched stopped the consumer, where failed runs are repeated at once."
  },
  {
    name: "a promise that was timed out is run again at once",
    file: consume("runs"),
    from: "const mayRerun = failure !== undefined && !isLate && allowsRerun",
    to: "const mayRerun = failure !== undefined && allowsRerun"
  },
  {
    name: "a lost delivery is run again at once",
    file: consume("runs"),
    from: 'by === "outcome" && !history.isLost',
    to: 'by === "outcome"',
    was: "A failed run was repeated at once though its delivery was lost by then."
  },
  {
    name: "a run again has the messages that are to be retried",
    file: consume("runs"),
    from: "const isOpen = mayRerun && isRerunnable(item, verdict)",
    to: 'const isOpen = mayRerun && verdict._tag === "Retry" && !item.history.isLost'
  },
  {
    name: "a handler that a drain interrupts has failed",
    file: consume("runs"),
    from: "if (verdict === undefined) return deliveries.settle(item, Settlement.Release())",
    to: 'if (verdict === undefined) return deliveries.conclude(item, { _tag: "Retry", by: "outcome", delay: undefined, backoff: true }, undefined)'
  },
  {
    name: "calls of a run count beside those of the run after it",
    file: consume("task"),
    from: "  close(): void {\n    this.isClosed = true",
    to: "  close(): void {",
    was: "A run that had failed, and was repeated at once, could still decide on its messages."
  },
  {
    name: "a handler ends twice when it goes on after its time",
    file: consume("runHandler"),
    from: "    if (this.#ended) return\n    this.#ended = true",
    to: "    this.#ended = true"
  },
  {
    name: "handlers have no time limit",
    file: consume("runHandler"),
    from: "    deadlines.start(this)\n",
    to: ""
  },
  {
    name: "an error's date is read without care",
    file: policy("Failure"),
    from: 'const time: unknown = value instanceof Date ? value.getTime() : undefined\n    return typeof time === "number" ? time : Number.NaN\n  } catch {\n    return Number.NaN\n  }',
    to: 'const time: unknown = value instanceof Date ? value.getTime() : undefined\n    return typeof time === "number" ? time : Number.NaN\n  } finally {\n  }',
    was: "What an error threw when it was read stopped the consumer, and health said that it runs."
  },
  {
    name: "what a hook throws is printed without care",
    file: "core/src/observe/Warnings.ts",
    from: "{ queue, event, ...thrown(error) }",
    to: "{ queue, event, errorMessage: String(error) }",
    was: "A hook that threw what cannot be printed stopped the consumer, and health said that it runs."
  }
]

const deciding: ReadonlyArray<Mutant> = [
  {
    name: "an ack overrides a retry",
    file: policy("Acknowledgement"),
    from: 'return self ?? { _tag: "Ack", by: "message" }',
    to: 'return { _tag: "Ack", by: "message" }'
  },
  {
    name: "a call on the batch overrides those on messages",
    file: policy("Acknowledgement"),
    from: 'return self ?? { _tag: "Ack", by: "batch" }',
    to: 'return { _tag: "Ack", by: "batch" }'
  },
  {
    name: "the delay of retryAll is forgotten",
    file: policy("Acknowledgement"),
    from: "return isOpen(self) && self.batchDelay !== undefined ? { ...self, delay: self.batchDelay } : self",
    to: "return self"
  },
  {
    name: "there is one attempt more than allowed",
    file: policy("RetryPolicy"),
    from: "if (!(attempts < policy.maxAttempts))",
    to: "if (!(attempts <= policy.maxAttempts))"
  },
  {
    name: "a retry that was asked for is classified by the error",
    file: policy("RetryPolicy"),
    from: 'asked || failure === undefined ? "retry"',
    to: 'failure === undefined ? "retry"'
  },
  {
    name: "an error that a message was failed with is not classified",
    file: policy("Decider"),
    from: 'asked: verdict.by !== "outcome" && verdict.failed === undefined,',
    to: 'asked: verdict.by !== "outcome",'
  },
  {
    name: "the backoff comes before the error's own delay",
    file: policy("RetryPolicy"),
    from: "    failure?.retryAfter,\n    policy.backoff && Backoff.delayAfter(policy.backoff, attempts, context.random),",
    to: "    policy.backoff && Backoff.delayAfter(policy.backoff, attempts, context.random),\n    failure?.retryAfter,"
  },
  {
    name: "the age is checked without the delay",
    file: policy("RetryPolicy"),
    from: "if (context.age + delay > policy.maxAge)",
    to: "if (context.age > policy.maxAge)"
  },
  {
    name: "a retry does not count its attempt",
    file: message("Outgoing"),
    from: "      attempts: delivery.attempts,\n      notBefore: dueAt(delay, now),",
    to: "      attempts: delivery.attempts - 1,\n      notBefore: dueAt(delay, now),"
  },
  {
    name: "a message that waits on counts an attempt",
    file: message("Outgoing"),
    from: "attempts: delivery.attempts - 1,\n      notBefore: dueAt(delay, now)",
    to: "attempts: delivery.attempts,\n      notBefore: dueAt(delay, now)"
  },
  {
    name: "a delay beyond the age is cut to the age",
    file: message("Metadata"),
    from: "self.firstPublished + Math.max(maxAge, longestDelay)",
    to: "self.firstPublished + Math.min(maxAge, longestDelay)"
  },
  {
    name: "a smaller copy does not say what it leaves out",
    file: message("Metadata"),
    from: "    truncation: truncations[Math.max(step, self.truncation === undefined ? 0 : truncations.indexOf(self.truncation))]\n",
    to: ""
  }
]

const losing: ReadonlyArray<Mutant> = [
  {
    name: "a lost delivery takes its room for ever",
    file: consume("deliveries"),
    from: "    if (item.history.isLost) this.counts.lost--\n",
    to: ""
  },
  {
    name: "a redelivery leaves the room of the lost one taken",
    file: consume("deliveries"),
    from: "this.counts.lost += isLost ? -1 : 1",
    to: "this.counts.lost += isLost ? 0 : 1"
  },
  {
    name: "a redelivery beside its handler is a new message",
    file: consume("deliveries"),
    from: "    if (this.#dependencies.isLeased) this.#copies.add(item)\n",
    to: ""
  },
  {
    name: "what was decided is forgotten with the connection",
    file: lifecycle,
    from: 'effects: [{ _tag: "Remember", memory: { ...countsOf(life), decision: decided(life), isLost: true } }]',
    to: "effects: none"
  },
  {
    name: "a dead letter is repeated for each redelivery",
    file: lifecycle,
    from: "const settlement = goesBack(decision.settlement) ? decision.settlement : Settlement.Ack",
    to: "const { settlement } = decision"
  },
  {
    name: "what comes again while it goes back is taken for the same",
    file: lifecycle,
    from: "const isSame = !goesBack(settlement) || isCopied || history.isLost || due > context.now",
    to: "const isSame = true"
  },
  {
    name: "what comes again while its retry is copied runs beside the copy",
    file: lifecycle,
    from: "|| isCopied || history.isLost || due",
    to: "|| history.isLost || due"
  },
  {
    name: "a message that is given back counts what was lost before",
    file: lifecycle,
    from: "if (!goesBack(settlement) || history.redelivery",
    to: 'if (settlement._tag !== "Retry" || history.redelivery'
  },
  {
    name: "a message is known by its id and its time",
    file: consume("copies"),
    from: "const name: unknown = outlet.subscription?.identify(delivery)",
    to: "const name: unknown = `${delivery.metadata.firstPublished} ${delivery.metadata.id}`",
    was: "Of two messages with one id and one time, one was acked without a run."
  },
  {
    name: "what was decided on a lost delivery is repeated on all that come after",
    file: consume("copies"),
    from: "      memories.delete(name)\n",
    to: ""
  },
  {
    name: "a delivery that no handler has begun costs an attempt",
    file: lifecycle,
    from: "const attempts = before.attempts + Math.max(0, delivery.attempts - before.brokerAttempts - 1)",
    to: "const attempts = delivery.attempts",
    was: "Reconnects used up the attempts of messages that only waited, and these were dead-lettered unseen."
  },
  {
    name: "attempts that others have had in between are forgotten",
    file: lifecycle,
    from: "const attempts = before.attempts + Math.max(0, delivery.attempts - before.brokerAttempts - 1)",
    to: "const attempts = before.attempts"
  },
  {
    name: "a retry that was lost is repeated without its delay",
    file: lifecycle,
    from: "Settlement.Retry(Math.min(settlement.delay, Math.max(0, Math.ceil(due - now))), settlement.error)",
    to: "Settlement.Retry(0, settlement.error)"
  },
  {
    name: "a lease that is lost is not noticed",
    file: consume("deliveries"),
    from: '        if (fate === "lost") this.#advance(item, { _tag: "Lost" })\n',
    to: ""
  }
]

const settling: ReadonlyArray<Mutant> = [
  {
    name: "a refused settlement counts as the broker's trouble",
    file: consume("deliveries"),
    from: 'rejected: "Succeeded"',
    to: 'rejected: "Failed"',
    was: "One refused settlement held up all other messages."
  },
  {
    name: "messages in quarantine take the room of others",
    file: consume("flow"),
    from: "maxInFlight(window, begun - kept) + Math.min(kept, spare) - lost",
    to: "maxInFlight(window, begun) - lost",
    was: "One refused settlement held up all other messages."
  },
  {
    name: "a settlement that waits for the broker is not sent when it may be",
    file: consume("deliveries"),
    from: "return flow.broker.mayStart() ? this.resume() : undefined",
    to: "return"
  },
  {
    name: "settlements that wait for the broker wait for ever",
    file: consume("engine"),
    from: "    deliveries.resume()\n    flow.update()",
    to: "    flow.update()"
  },
  {
    name: "a settlement that waits for the broker is sent though its delivery is lost",
    file: lifecycle,
    from: 'const isBusy = state._tag === "Running" ||',
    to: 'const isBusy = state._tag === "Held" || state._tag === "Running" ||'
  },
  {
    name: "a settlement in quarantine is sent though its delivery is lost",
    file: lifecycle,
    from: 'const isBusy = state._tag === "Running" ||',
    to: 'const isBusy = state._tag === "Kept" || state._tag === "Running" ||'
  },
  {
    name: "what left quarantine is counted there",
    file: lifecycle,
    from: "history.redelivery === undefined && decisionOf(state)?.kept === undefined ? over : undefined",
    to: "history.redelivery === undefined && decisionOf(state) !== undefined ? over : undefined"
  },
  {
    name: "a retry that cannot be copied goes back at once",
    file: lifecycle,
    from: "{ settlement: native, pause: delayOf(settlement), isQuarantined: false }",
    to: "{ settlement: native, pause: 0, isQuarantined: false }"
  },
  {
    name: "a refused copy is tried again as it was",
    file: lifecycle,
    from: "if (smaller !== undefined) return decide(life, smaller, context)",
    to: "if (smaller !== undefined) return decide(life, settlement, context)"
  },
  {
    name: "settlements are sent while their leases are extended",
    file: consume("settler"),
    from: "const waiting = extending === undefined ? none : waitingFor(pending, extending)",
    to: "const waiting = none"
  },
  {
    name: "leases are extended while they are settled",
    file: consume("settler"),
    from: "filter((item) => !isSettled(item) && !item.history.isLost)",
    to: "filter((item) => !item.history.isLost)"
  },
  {
    name: "settlements that wait for an extension are not sent after it",
    file: consume("settler"),
    from: "undefined : began)\n        flush()",
    to: "undefined : began)"
  },
  {
    name: "the timer of settlements that gather is set once",
    file: consume("settler"),
    from: "    if (timer !== undefined) timers.cancel(timer)\n    timer = undefined",
    to: "    timers.cancel(timer)"
  }
]

const flowing: ReadonlyArray<Mutant> = [
  {
    name: "a probe waits for handlers that are at work",
    file: consume("flow"),
    from: "return Math.min(room, begun - lost + 1)",
    to: "return Math.min(room, 1)",
    was: "A probe waited for slow handlers that had nothing to do with it."
  },
  {
    name: "what waited does not begin after a pause by hand",
    file: consume("flow"),
    from: "    isPaused = held\n    dependencies.onChange()",
    to: "    isPaused = held\n    update()"
  },
  {
    name: "more than one message begins while probing",
    file: consume("flow"),
    from: '(mode._tag === "Probing" && mode.probe === undefined)',
    to: 'mode._tag === "Probing"'
  },
  {
    name: "a probe that says nothing is waited for",
    file: policy("BackoffState"),
    from: "return paused(state, state.level, state.pause)",
    to: "return [state, none]"
  },
  {
    name: "any message's success ends the probe",
    file: policy("BackoffState"),
    from: "  if (event.id !== probed) return [state, none]\n",
    to: ""
  },
  {
    name: "a failure in a pause makes it longer",
    file: policy("BackoffState"),
    from: 'if (event._tag === "Elapsed") return probe(state)',
    to: 'if (event._tag === "Elapsed") return probe(state)\n      if (event._tag === "Failed") return failed(policy, state, random)'
  },
  {
    name: "a drain does not give back what waits",
    file: consume("engine"),
    from: "    giveBackAll([...batcher.clear(), ...arrival.clear()])",
    to: ""
  },
  {
    name: "a drain does not wait for the settlements of what it interrupts",
    file: consume("shutdown"),
    from: "          yield* waitUntilIdle(settleGrace(millis))\n",
    to: ""
  }
]

const redriving: ReadonlyArray<Mutant> = [
  {
    name: "one refused letter ends a redrive",
    file: letters("page"),
    from: 'if (Broker.fateOf(error) !== "rejected") return Effect.fail(error)',
    to: "return Effect.fail(error)",
    was: "One letter that could not be published ended each redrive, after its neighbours had been published again."
  },
  {
    name: "a letter that the broker did not remove counts as removed",
    file: letters("page"),
    from: "      if (failure === undefined) {\n        sweep.held--",
    to: "      if (failure !== null) {\n        sweep.held--",
    was: "A purge counted letters that the broker had not removed, and left them."
  },
  {
    name: "a redrive takes letters that arrive while it runs",
    file: letters("sweep"),
    from: "books = Books.make(ready, limit, held, options.known, browser.identify)",
    to: "books = Books.make(undefined, limit, held, options.known, browser.identify)"
  },
  {
    name: "a redrive goes beyond its limit",
    file: letters("sweepStats"),
    from: "(found ?? Number.POSITIVE_INFINITY) - judged, limit - selected)",
    to: "(found ?? Number.POSITIVE_INFINITY) - judged)"
  }
]

const waiting: ReadonlyArray<Mutant> = [
  {
    name: "the rest of a delay is rounded up to a minute",
    file: message("Metadata"),
    from: "Math.max(0, Math.ceil(due - now))",
    to: "Math.max(0, Math.ceil((due - now) / 60_000) * 60_000)"
  },
  {
    name: "the pauses of a message in quarantine do not grow",
    file: lifecycle,
    from: "pause: Math.min(2 * kept.pause, pauses.longest)",
    to: "pause: kept.pause"
  },
  {
    name: "a message in quarantine is tried again at once",
    file: lifecycle,
    from: "{ settlement: whole, pause: pauses.first, isQuarantined: true }",
    to: "{ settlement: whole, pause: 0, isQuarantined: true }"
  },
  {
    name: "a message stays in quarantine",
    file: consume("deliveries"),
    from: "timers.after(state.decision.kept!.pause, () => this.#resume([item]))",
    to: "if (!isQuarantined(item)) timers.after(state.decision.kept!.pause, () => this.#resume([item]))"
  }
]

const settlingOfKit = "kit/src/Settling.ts"

const clients: ReadonlyArray<Mutant> = [
  {
    name: "the adapter for NSQ takes two addresses of one nsqd for two",
    file: "adapter-nsq/src/internal/consume/session.ts",
    from: "new Receipt(session, frame, decoded.nonce",
    to: "new Receipt(session, { ...frame, name: node.name + frame.name }, decoded.nonce",
    was: "A message that came again at another address of its nsqd ran again, though it was settled."
  },
  {
    name: "the adapter for NSQ takes a publish without an answer for stored",
    file: "adapter-nsq/src/internal/publish/publisher.ts",
    from: "for (const group of all) answer(group, () => error)",
    to: 'for (const group of all) answer(group, () => "Stored")'
  },
  {
    name: "the kit acks before the copy is stored",
    file: settlingOfKit,
    from: "publish(copies, copied)",
    to: "(carryOut(copies.map((each) => claimed(each, ack)), () => {}), publish(copies, copied))"
  },
  {
    name: "the kit keeps an original whose copy is stored",
    file: settlingOfKit,
    from: "carryOut([claimed(each, ack)], acked)",
    to: "succeed(each)"
  },
  {
    name: "the kit does not release what it could not settle",
    file: settlingOfKit,
    from: 'fate === "lost" ? error : release(each, error, fate)',
    to: 'fate === "lost" ? error : undefined'
  },
  {
    name: "the kit takes a failed copy for stored",
    file: settlingOfKit,
    from: "if (failure === undefined) {\n          stored?.",
    to: 'if (failure === undefined || failure.fate === "unknown") {\n          stored?.'
  }
]

/** The mutants of the core, and of the kit that adapters share. */
export const mutants: ReadonlyArray<Mutant> = [
  ...arriving,
  ...batching,
  ...running,
  ...deciding,
  ...losing,
  ...settling,
  ...flowing,
  ...redriving,
  ...waiting,
  ...clients,
  ...found
]
