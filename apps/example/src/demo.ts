/** One run: publish, dispatch, count; then heal the receiver, send the dead letters again, and count once more. */
import { randomBytes } from "node:crypto"
import { connect, describe } from "@requeue/core/promise"
import { balance, type Books } from "./books.ts"
import { tally } from "./causes.ts"
import { startDispatcher } from "./dispatcher.ts"
import { makeLedger } from "./ledger.ts"
import type { Options } from "./options.ts"
import { deadLetterQueue, policy, queue } from "./policy.ts"
import { startPublisher } from "./publisher.ts"
import { measure } from "./punctuality.ts"
import { startReceiver } from "./receiver.ts"
import { startRedrive } from "./redriver.ts"
import type { Report } from "./report.ts"
import type { Screen } from "./screen.ts"
import { listen } from "./signals.ts"
import { intro, redriving, summary } from "./summary.ts"

export const run = async (options: Options, screen: Screen): Promise<Report> => {
  const start = performance.now()
  const elapsedMs = (): number => Math.round(performance.now() - start)
  const { broker, count, drain, seed, url } = options
  const secret = randomBytes(32).toString("hex")
  using signals = listen((signal) =>
    screen.print(`${signal}: draining for at most ${drain / 1000} s; once more stops at once`)
  )
  await using receiver = await startReceiver({ secret, seed })
  await using requeue = await connect(url, { logLevel: "None" })
  const deadLetters = requeue.deadLetters(deadLetterQueue)
  const dispatcher = await startDispatcher({ requeue, receiver, secret, screen, signals, drain })
  const [first, second] = [makeLedger(), makeLedger()]

  const takeBooks = async (): Promise<Books> => {
    const { delayed = 0, inFlight = 0, ready = 0 } = await requeue.counts(queue)
    return balance({
      published: publisher.count(),
      visits: receiver.visits,
      isDelivered: (id) => first.isDelivered(id) || second.isDelivered(id),
      deadLettered: (await deadLetters.count()) ?? 0,
      queued: ready + inFlight + delayed
    })
  }

  screen.print(intro(options, describe(policy.retry).text, screen.paint))
  const publisher = startPublisher(requeue, seed, count)
  const stopped = await dispatcher.dispatch(publisher, first)
  const books = await takeBooks()
  const report: Report = {
    broker,
    seed,
    ...books,
    retried: first.retries(),
    ...measure(receiver.visits, first.due),
    ...tally(await deadLetters.list({ limit: Math.max(1, books.deadLettered) })),
    attempts: Object.fromEntries([...first.attempts].toSorted(([a], [b]) => a - b)),
    rejected: receiver.rejected(),
    stopped,
    redrive: null,
    elapsedMs: elapsedMs()
  }
  screen.print(summary(report, screen.paint))
  if (stopped !== null || books.deadLettered === 0) return report

  receiver.heal()
  const visitsBefore = receiver.visits.length
  screen.print(redriving(books.deadLettered, screen.paint))
  const redriver = startRedrive(deadLetters, books.deadLettered)
  const stoppedAgain = await dispatcher.dispatch(redriver, second)
  return {
    ...report,
    early: report.early + measure(receiver.visits.slice(visitsBefore), second.due).early,
    rejected: receiver.rejected(),
    stopped: stoppedAgain,
    redrive: { redriven: redriver.count(), ...(await takeBooks()) },
    elapsedMs: elapsedMs()
  }
}
