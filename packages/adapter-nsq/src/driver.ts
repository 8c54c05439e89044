/**
 * The seam between this adapter and nsqd, for simulated servers and tests. Programs do not need it.
 *
 * A broker takes the `Driver` from its context when it is made, and reaches nsqd and nsqlookupd only through it.
 */
export type { Address, HttpInterface } from "./internal/address.ts"
export {
  type Connection,
  Driver,
  type Identity,
  type Listener,
  type PublishCommand,
  type PublishingConnection,
  type Subscription
} from "./internal/client.ts"
export type { HttpResponse, RequestOptions } from "./internal/httpClient.ts"
export type { Settings } from "./NsqOptions.ts"
