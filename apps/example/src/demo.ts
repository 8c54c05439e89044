/** One run: publishes, dispatches and counts; then heals the receiver, redrives the dead letters, and counts once more. */
import { deadLetters } from "@requeue/operations/promise"
import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { connect, describe } from "@requeue/core/promise"
import { readBacklog } from "./backlog.ts"
import { balance, type Books } from "./books.ts"
import { countCauses } from "./causes.ts"
import { close } from "./closing.ts"
import { writeConfigFile } from "./configFile.ts"
import { startDispatcher } from "./dispatcher.ts"
import { openJournal } from "./journal.ts"
import { type Ledger, makeLedger } from "./ledger.ts"
import type { Options } from "./options.ts"
import { openOutbox } from "./outbox.ts"
import type { Webhook } from "./payloads.ts"
import { settle } from "./place.ts"
import { deadLetterQueue, policy, queue } from "./policy.ts"
import { startPublisher } from "./publisher.ts"
import { measure } from "./punctuality.ts"
import { startReceiver } from "./receiver.ts"
import { awaitRedrive, startRedrive } from "./redriver.ts"
import type { Report } from "./report.ts"
import type { Screen } from "./screen.ts"
import { listen } from "./signals.ts"
import { continuing, intro, redriving, summary, waiting } from "./summary.ts"

/** Milliseconds after which a due message, or a superfluous copy, has usually been counted. */
const lateness = 1000

const stopwatch = (): (() => number) => {
  const start = performance.now()
  return () => Math.round(performance.now() - start)
}

/** Long, because all that a run opens ends with it. */
export const run = async (options: Options, screen: Screen): Promise<Report> => {
  const elapsedMs = stopwatch()
  const { broker, count, drain, seed } = options
  const secret = randomBytes(32).toString("hex")
  using signals = listen((signal) =>
    screen.print(`${signal}: draining for at most ${drain / 1000} s; once more stops at once`)
  )
  await using place = await settle(options, screen.print)
  const journal = openJournal(place.journal, options)
  await using receiver = await startReceiver({ secret, seed, onAccepted: (accepted) => journal.write({ accepted }) })
  using outbox = options.outbox ? openOutbox() : undefined
  await using requeue = await connect(place.url, { logLevel: "None", store: outbox?.url })
  await using _ = outbox && (await requeue.relay())
  const letters = deadLetters(requeue, deadLetterQueue)
  const backlog = await readBacklog(requeue, journal.earlier, options)
  if (backlog.continues !== null) screen.print(continuing(backlog.continues))
  const dispatcher = await startDispatcher({ requeue, receiver, secret, screen, signals, drain })
  const [first, second] = [makeLedger(), makeLedger()]

  const takeBooks = async (): Promise<Books> => {
    const { delayed = 0, inFlight = 0, ready = 0 } = await requeue.counts(queue)
    return balance({
      published: backlog.ended + publisher.count(),
      visits: [...backlog.visits, ...receiver.visits],
      isDelivered: (id) => backlog.isDone(id) || first.isDelivered(id) || second.isDelivered(id),
      deadLettered: (await letters.count()) ?? 0,
      queued: ready + inFlight + delayed
    })
  }
  const closeBooks = async (ledger: Ledger): Promise<Books> => {
    if ((await requeue.counts(queue)).delayed === undefined) await allDue(ledger)
    return close(takeBooks, screen.print)
  }

  screen.print(intro(options, place, describe(policy.retry).text, screen.paint))
  dispatcher.keep(first)
  const send = async (burst: ReadonlyArray<Webhook>): Promise<unknown> =>
    outbox ? outbox.accept(requeue, burst) : requeue.sendBatch(queue, burst)
  const publisher = startPublisher({ send, seed, count, backlog, journal })
  const stopped = await dispatcher.dispatch(publisher)
  const books = await closeBooks(first)
  const report: Report = {
    broker,
    keeps: place.keeps,
    outbox: options.outbox,
    seed,
    continues: backlog.continues,
    ...books,
    retried: first.retries(),
    timedOut: first.timedOut(),
    ...measure(receiver.visits, first.due),
    ...countCauses(await letters.list({ limit: Math.max(1, books.deadLettered) })),
    attempts: Object.fromEntries([...first.attempts].toSorted(([a], [b]) => a - b)),
    rejected: receiver.rejected(),
    stopped,
    redrive: null,
    elapsedMs: elapsedMs()
  }
  screen.print(summary(report, screen.paint))
  if (stopped !== null) return report
  if (books.deadLettered === 0) {
    journal.remove()
    return report
  }

  receiver.heal()
  const visitsBefore = receiver.visits.length
  dispatcher.keep(second)
  using file = options.wait ? writeConfigFile(broker, place.url) : undefined
  const { deadLettered } = books
  const { paint } = screen
  screen.print(file === undefined ? redriving(deadLettered, paint) : waiting(deadLettered, file.path, paint))
  const redriver = file === undefined ? startRedrive(letters, deadLettered) : awaitRedrive(deadLettered)
  const stoppedAgain = await dispatcher.dispatch(redriver, file && Number.POSITIVE_INFINITY)
  const redrive = { redriven: redriver.count(), ...(await closeBooks(second)) }
  if (redrive.deadLettered + redrive.queued === 0) journal.remove()
  return {
    ...report,
    early: report.early + measure(receiver.visits.slice(visitsBefore), second.due).early,
    rejected: receiver.rejected(),
    stopped: stoppedAgain,
    redrive,
    elapsedMs: elapsedMs()
  }
}

/** Waits until all messages are due, for a broker that cannot count delayed ones. */
const allDue = async ({ due }: Ledger): Promise<void> => {
  const last = Math.max(0, ...due.values())
  await sleep(Math.max(0, last + lateness - performance.now()))
}
