/** The work of a handler that fails once for some of its messages, and the record of their redeliveries. */
import type { Meter } from "../../Meter.ts"
import * as Lateness from "../lateness.ts"
import * as Calls from "./calls.ts"
import type * as Jobs from "./jobs.ts"

export const make = ({ delay, failing }: Pick<Jobs.Retry, "delay" | "failing">, meter: Meter) => {
  const calls = Calls.count()
  const lateness = Lateness.make()
  let arrived = 0
  let deliveries = 0
  return {
    /** Whether it succeeded. */
    handle: (id: string, attempts: number): boolean => {
      deliveries++
      if (attempts > 1) lateness.came(id)
      else if (arrived++ % 10 < failing) {
        lateness.due(id, delay)
        return false
      }
      meter.tick()
      return true
    },
    report: (): void => {
      lateness.report(meter)
      calls.report(meter, deliveries)
    }
  }
}
