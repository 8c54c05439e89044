/** The answer of nsqd to `IDENTIFY`: what was asked for, and what was granted. Pure. */
import * as Predicate from "effect/Predicate"
import { isLocal } from "./address.ts"

/** All that is settled before a connection is used. */
export interface Handshake {
  /** The reason for which the connection must not be used; `undefined` when it may. */
  readonly refusal: string | undefined
  /** Whether nsqd wants the secret. */
  readonly wantsSecret: boolean
  /** All that was asked for and is not had, for people. */
  readonly notes: ReadonlyArray<string>
}

/** The settings that concern what nsqd must grant. */
interface Asked {
  readonly secret: unknown
  readonly tls: unknown
  readonly compression: "none" | "deflate" | "snappy"
}

/** The beginnings of refusals, by which their remedies are found. */
export const refusals = {
  notNsq: "the server does not speak NSQ",
  noTls: "TLS was asked for, and nsqd answers that it has none",
  early: "nsqd was heard in the clear after it had agreed to TLS",
  clear: "authSecret would be sent in the clear",
  noSecret: "nsqd wants a secret, and there is none"
} as const

export const remedyInClear = "Set tls, or authInClear: true where nobody can listen"

/** The refusal of a host to which the secret would go in the clear; `undefined` when it may be connected to. */
export const refusalOf = (
  { authInClear, secret, tls }: Pick<Asked, "secret" | "tls"> & { readonly authInClear: boolean },
  host: string
): string | undefined =>
  secret === undefined || tls !== undefined || authInClear || isLocal(host) ? undefined : `${refusals.clear} to ${host}`

/** Reads the answer, which is no more than `OK` when nsqd knows of no features. */
export const read = (answer: string, { compression, secret, tls }: Asked): Handshake => {
  const granted: unknown = answer === "OK" ? {} : JSON.parse(answer)
  const has = (feature: string): boolean => Predicate.isReadonlyObject(granted) && granted[feature] === true
  const wantsSecret = has("auth_required")
  const notes: Array<string> = []
  if (compression !== "none" && !has(compression)) {
    notes.push(`nsqd does not offer ${compression}: this connection is not compressed`)
  }
  if (secret !== undefined && !wantsSecret) notes.push("nsqd wants no secret: authSecret was not sent")
  const refusal =
    tls !== undefined && !has("tls_v1")
      ? refusals.noTls
      : wantsSecret && secret === undefined
        ? refusals.noSecret
        : undefined
  return { refusal, wantsSecret, notes }
}

/** Whether the first bytes of a server begin a frame of NSQ: those of all others would be frames of more than 16 MB. */
export const isNsq = (first: Uint8Array): boolean => first[0] === 0
