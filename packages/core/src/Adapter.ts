/** How an adapter package makes itself known: by the URL schemes that it serves. */
import type * as Layer from "effect/Layer"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import type { ConfigurationError } from "./ConfigurationError.ts"

/** Every adapter package exports one as `adapter`. */
export interface Adapter {
  /** Without the colon, for example `["amqp", "amqps"]`. */
  readonly schemes: ReadonlyArray<string>
  /** A broker for a URL of one of the schemes. Fails with the offending part of the URL, never with its password. */
  readonly layer: (url: URL) => Layer.Layer<Broker, BrokerError | ConfigurationError>
}
