/** Counts the calls of a process where they leave it, in the same way for all contenders. */
import { subscribe } from "node:diagnostics_channel"
import type { Meter } from "../../Meter.ts"

export const count = () => {
  let calls = 0
  subscribe("http.client.request.start", () => calls++)
  return {
    report: (meter: Meter, deliveries: number): void => meter.figure("calls per delivery", calls / deliveries)
  }
}
