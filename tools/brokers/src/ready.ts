/** Waiting for servers on machines of any speed: for minutes while they start, not at all for one that has ended. */
import { setTimeout as sleep } from "node:timers/promises"

/** Milliseconds that one answer may take. */
export const patience = 60_000

export interface Waiting {
  /** What is waited for, for people. */
  readonly what: string
  /** Milliseconds until it has failed. */
  readonly deadline: number
  readonly isAlive: () => boolean | Promise<boolean>
  /** The end of its log. */
  readonly log: () => string | Promise<string>
  /** Ends what failed to get ready. */
  readonly end?: () => Promise<void>
  /** Takes the progress. */
  readonly say: (line: string) => void
}

/** Asks until there is an answer; `ask` gets the milliseconds that it may take. */
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
    const answer = await ask(Math.max(1, Math.min(patience, Math.round(deadline - waited)))).then(
      (value) => ({ value }),
      (cause: Error) => cause.message
    )
    if (typeof answer === "object") return answer.value
    if (waited >= deadline) throw await fail(`is not ready after ${deadline} ms (${answer})`)
    if (waited >= told) {
      say(`Waiting for ${what} since ${Math.round(waited / 1000)} s (${answer}) ...`)
      told *= 2
    }
    // The longer it takes, the less often it is asked: it needs the machine itself.
    await sleep(Math.min(10 + waited / 20, 250))
  }
}
