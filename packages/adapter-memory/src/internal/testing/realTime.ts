/**
 * The process's own timers, as they were before a test runner replaced them, and turns of the event loop by them.
 */
import * as Scheduler from "effect/Scheduler"

const { clearImmediate, setImmediate } = globalThis
const now = performance.now.bind(performance)

/** Effect takes `setImmediate` where it finds it, and would wait for the test runner's clock. */
export const verify = (): void => {
  if (globalThis.setImmediate === setImmediate) return
  throw new Error(
    "Testing.open: fake timers replace setImmediate, which Requeue needs to start. " +
      "Open the broker before them, or leave them off: it has a clock of its own"
  )
}

const turn = (): Promise<void> => new Promise((resume) => void setImmediate(resume))

/** Waits for the work so many milliseconds at most, and answers whether it has ended. */
export const within = async (patience: number, work: Promise<unknown>): Promise<boolean> => {
  let ended = false
  void work.then(() => (ended = true))
  // Turn by turn, so that no timer is needed that a test runner could have replaced.
  for (const start = now(); !ended && now() - start < patience; ) await turn()
  return ended
}

export interface Turns {
  /** For every fiber that is to be waited for. */
  readonly scheduler: Scheduler.Scheduler
  /** Resolves with true when no fiber has anything left to do, with false when they never come to rest. */
  readonly rest: () => Promise<boolean>
}

/** Turns in which nothing may happen: more than one, for what runs beside the scheduler. */
const still = 3

/** Real milliseconds after which fibers that always have something to do are given up. */
const patience = 2000

export const make = (): Turns => {
  let scheduled = 0
  const scheduler = new Scheduler.MixedScheduler("async", (task) => {
    scheduled++
    const immediate = setImmediate(() => {
      scheduled--
      task()
    })
    return () => {
      scheduled--
      clearImmediate(immediate)
    }
  })
  return {
    scheduler,
    rest: async () => {
      const start = now()
      for (let quiet = 0; quiet < still; quiet = scheduled > 0 ? 0 : quiet + 1) {
        if (now() - start > patience) return false
        await turn()
      }
      return true
    }
  }
}
