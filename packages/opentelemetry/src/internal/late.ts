/**
 * Telemetry for a global meter provider that may be registered later. The API of OpenTelemetry has a proxy for tracers, and
 * none for meters: a meter that was taken too early stays without effect.
 */
import { createNoopMeter, type Meter, type MeterProvider, metrics } from "@opentelemetry/api"
import type { Telemetry } from "@requeue/core/port"

/** Makes telemetry by a meter of the given provider, or else by one of the global provider as soon as there is one. */
export const make = (
  given: MeterProvider | undefined,
  scope: string,
  build: (meter: Meter) => Telemetry.Service
): Telemetry.Service => {
  const none = createNoopMeter()
  let meter = (given ?? metrics.getMeterProvider()).getMeter(scope)
  let service = build(meter)
  const isMissing = (): boolean => given === undefined && meter === none

  /** The telemetry now. It changes once: when the provider is there. */
  const current = (): Telemetry.Service => {
    if (!isMissing()) return service
    meter = metrics.getMeterProvider().getMeter(scope)
    if (meter !== none) service = build(meter)
    return service
  }

  return {
    send: (broker, messages, publish) => current().send(broker, messages, publish),
    consumer: (about) => {
      let known = current()
      let watch = known.consumer(about)
      if (!isMissing()) return watch
      const latest = (): Telemetry.Watch => {
        const now = current()
        if (now !== known) {
          known = now
          watch = now.consumer(about)
        }
        return watch
      }
      return {
        onEvent: (event) => latest().onEvent(event),
        run: (deliveries, rerun) => latest().run(deliveries, rerun),
        settle: (requests, settle) => latest().settle(requests, settle),
        close: () => watch.close()
      }
    }
  }
}
