/** Real time: the process's timers as they were before a test runner replaced them, and turns of the event loop. */
import * as Scheduler from "effect/Scheduler"

const { clearImmediate, setImmediate } = globalThis
const now = performance.now.bind(performance)

/** Throws if a test runner has replaced `setImmediate`: Effect would use that, and wait for the test runner's clock. */
export const verify = (): void => {
  if (globalThis.setImmediate === setImmediate) return
  throw new Error(
    "Testing.open: fake timers replace setImmediate, which Requeue needs to start. " +
      "Open the broker before you install them, or do without them: the broker has a virtual clock"
  )
}

const turn = (): Promise<void> => new Promise((resume) => void setImmediate(resume))

/** Waits for the work, at most `timeout` milliseconds, and returns whether it has ended. */
export const within = async (timeout: number, work: Promise<unknown>): Promise<boolean> => {
  let ended = false
  void work.then(() => (ended = true))
  // Waits by turns of the event loop, because a test runner may have replaced timers.
  for (const start = now(); !ended && now() - start < timeout; ) await turn()
  return ended
}

/** Turns of the event loop, and a scheduler that runs fibers in them. */
export interface Turns {
  /** The scheduler of the fibers that `rest` waits for. */
  readonly scheduler: Scheduler.Scheduler
  /** Resolves with true when no fiber has work left, or with false if that takes too long. */
  readonly rest: () => Promise<boolean>
}

/** Turns without work after which all is at rest: more than one, because promises bypass the scheduler. */
const quietTurns = 3

/** How long to wait for fibers that always have work, in milliseconds of real time. */
const restTimeout = 2000

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
      for (let quiet = 0; quiet < quietTurns; quiet = scheduled > 0 ? 0 : quiet + 1) {
        if (now() - start > restTimeout) return false
        await turn()
      }
      return true
    }
  }
}
