/** Waits for servers: for minutes while they start, on machines of any speed, and not at all for one that has ended. */
import { setTimeout as sleep } from "node:timers/promises"

/** Milliseconds that a server or a command may take to answer. */
export const answerTimeout = 60_000

export interface Waiting {
  /** The name of the server, for messages. */
  readonly what: string
  /** Milliseconds after which waiting fails. */
  readonly deadline: number
  readonly isAlive: () => boolean | Promise<boolean>
  /** Returns the end of the server's log. */
  readonly log: () => string | Promise<string>
  /** Ends a server that did not get ready. */
  readonly end?: () => Promise<void>
  /** Receives lines about the progress. */
  readonly say: (line: string) => void
}

/** Repeats `ask` until it has an answer, and returns that. `ask` receives the milliseconds that it may take. */
export const untilReady = async <A>(ask: (milliseconds: number) => Promise<A>, waiting: Waiting): Promise<A> => {
  const { what, deadline, isAlive, log, end, say } = waiting
  const began = performance.now()
  const fail = async (why: string) => {
    const failure = new Error(`${what} ${why}. Its log ends:\n${await log()}`)
    await end?.()
    return failure
  }
  for (let told = 10_000, waited = 0; ; waited = performance.now() - began) {
    if (!(await isAlive())) throw await fail("ended before it was ready")
    const answer = await ask(Math.max(1, Math.min(answerTimeout, Math.round(deadline - waited)))).then(
      (value) => ({ value }),
      (cause: Error) => cause.message
    )
    if (typeof answer === "object") return answer.value
    if (waited >= deadline) throw await fail(`is not ready after ${deadline} ms (${answer})`)
    if (waited >= told) {
      say(`Waiting for ${what} since ${Math.round(waited / 1000)} s (${answer}) ...`)
      told *= 2
    }
    // The interval grows, because the server needs the machine itself.
    await sleep(Math.min(10 + waited / 20, 250))
  }
}
