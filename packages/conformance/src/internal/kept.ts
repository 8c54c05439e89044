/** Leases that are extended while a case runs, on a machine that may stand still. */
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"

/**
 * Checks that leases are kept that are extended three times or more within their time: at once if the broker has no leases, else
 * at the case's end. Returns whether it holds: if not, the case ends.
 *
 * A process, or a broker, that stands still for longer than a lease loses it, whatever the adapter does. A shorter standstill is
 * no excuse: a pause of a few milliseconds, which is much for a delay, explains no lost lease. Of two extensions that come too
 * late, one is late by more than a quarter of the lease.
 */
export const checkKept = (
  { capabilities, checkTimely, harness }: Pick<Lab, "capabilities" | "checkTimely" | "harness">,
  what: string,
  actual: unknown,
  expected: unknown,
  from: number
): boolean => {
  if (capabilities.lease === undefined) {
    Check.equal(what, actual, expected)
    return true
  }
  checkTimely(what, actual, expected, from, Math.max(harness.lateness, capabilities.lease.duration / 2))
  return Check.difference(what, actual, expected) === undefined
}

/** Checks with {@link checkKept} that no message was delivered twice. */
export const checkOnce = (
  lab: Pick<Lab, "arrivals" | "capabilities" | "checkTimely" | "harness">,
  from: number
): boolean => {
  const ids = lab.arrivals().map(({ delivery }) => delivery.metadata.id)
  return checkKept(lab, "deliveries", ids.toSorted(), [...new Set(ids)].toSorted(), from)
}
