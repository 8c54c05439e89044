/** Compares nsqd's answer to `IDENTIFY` with the requested features. Pure. */
import * as Predicate from "effect/Predicate"
import { isLocal } from "./address.ts"

/** The result of the handshake. */
export interface Handshake {
  /** Why the connection must not be used; `undefined` when it may. */
  readonly refusal: string | undefined
  /** Whether nsqd requires the secret. */
  readonly wantsSecret: boolean
  /** Requested features that nsqd does not provide, as text. */
  readonly notes: ReadonlyArray<string>
}

/** The settings that nsqd must grant. */
interface Asked {
  readonly secret: unknown
  readonly tls: unknown
  readonly compression: "none" | "deflate" | "snappy"
}

/** How refusals begin. `toBrokerError` finds their remedies by these texts. */
export const refusals = {
  notNsq: "the server does not speak NSQ",
  noTls: "tls is set, but nsqd does not offer TLS",
  early: "nsqd sent unencrypted data after it had agreed to TLS",
  clear: "authSecret would be sent in the clear",
  noSecret: "nsqd requires a secret, but authSecret is not set"
} as const

export const remedyInClear = "Set tls, or set authInClear: true on a trusted network"

/** Returns the refusal of a host that would receive the secret unencrypted; `undefined` for others. */
export const refusalOf = (
  { authInClear, secret, tls }: Pick<Asked, "secret" | "tls"> & { readonly authInClear: boolean },
  host: string
): string | undefined =>
  secret === undefined || tls !== undefined || authInClear || isLocal(host) ? undefined : `${refusals.clear} to ${host}`

/** Reads the answer, which is only `OK` from an nsqd without feature negotiation. */
export const read = (answer: string, { compression, secret, tls }: Asked): Handshake => {
  const granted: unknown = answer === "OK" ? {} : JSON.parse(answer)
  const has = (feature: string): boolean => Predicate.isReadonlyObject(granted) && granted[feature] === true
  const wantsSecret = has("auth_required")
  const notes: Array<string> = []
  if (compression !== "none" && !has(compression)) {
    notes.push(`nsqd does not offer ${compression}: this connection is not compressed`)
  }
  if (secret !== undefined && !wantsSecret) notes.push("nsqd does not require a secret: authSecret was not sent")
  const refusal =
    tls !== undefined && !has("tls_v1")
      ? refusals.noTls
      : wantsSecret && secret === undefined
        ? refusals.noSecret
        : undefined
  return { refusal, wantsSecret, notes }
}

/** Whether a server's first bytes begin an NSQ frame: otherwise its size would be more than 16 MB. */
export const isNsq = (first: Uint8Array): boolean => first[0] === 0
