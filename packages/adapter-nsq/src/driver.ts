/**
 * The seam between this adapter and nsqd, for simulated servers and tests. Programs do not need it.
 *
 * A broker takes the `Driver` from its context when it is made, and reaches nsqd and nsqlookupd only through it.
 */
export type { Address, HttpInterface } from "./internal/address.ts"
export { Driver } from "./internal/client.ts"
export type {
  Connection,
  Identity,
  Listener,
  PublishCommand,
  PublishingConnection,
  Subscription
} from "./internal/driver.ts"
export type { HttpResponse, RequestOptions } from "./internal/httpClient.ts"
export type { Settings } from "./NsqOptions.ts"
