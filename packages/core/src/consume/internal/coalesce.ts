/**
 * Turns many requests into one call: `run` is called once when `schedule` calls back, however often it was asked for.
 */
export const coalesce = (schedule: (resume: () => void) => void, run: () => void): (() => void) => {
  let isScheduled = false
  const resume = (): void => {
    isScheduled = false
    run()
  }
  return () => {
    if (isScheduled) return
    isScheduled = true
    schedule(resume)
  }
}
