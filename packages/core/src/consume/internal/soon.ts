/** Puts off work to the end of the current job of the event loop, once for all who ask for it in that job. */
export const soon = (work: () => void): (() => void) => {
  let isScheduled = false
  return () => {
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      work()
    })
  }
}
