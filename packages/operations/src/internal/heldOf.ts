import type { Broker } from "@requeue/core"

/** Returns how many letters a reader holds; `undefined` where the broker does not report it, or the number may be stale. */
export const heldOf = ({ inFlight, isRead }: Broker.Counts): number | undefined => {
  if (isRead === false) return 0
  // A reader is attached, and the number may be older than its first page.
  return isRead === true && inFlight === 0 ? undefined : inFlight
}
