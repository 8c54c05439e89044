/**
 * Telemetry for a global meter provider that may be registered later. The API of OpenTelemetry has a proxy for tracers, but
 * none for meters: a meter that a program gets too early never has an effect.
 */
import { createNoopMeter, type Meter, type MeterProvider, metrics } from "@opentelemetry/api"
import type { Telemetry } from "@requeue/core/port"

/**
 * Makes telemetry by a meter of the given provider. Without one, it uses the global provider as soon as that is registered.
 */
export const make = (
  given: MeterProvider | undefined,
  scope: string,
  build: (meter: Meter) => Telemetry.Service
): Telemetry.Service => {
  const none = createNoopMeter()
  let meter = (given ?? metrics.getMeterProvider()).getMeter(scope)
  let service = build(meter)
  const isMissing = (): boolean => given === undefined && meter === none

  /** Returns the current telemetry. It changes once, when the provider is registered. */
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
