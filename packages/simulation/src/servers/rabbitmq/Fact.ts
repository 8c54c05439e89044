/** The declaration of a queue, and what becomes of its messages. */
import type { Entry } from "./Entry.ts"
import type * as Fields from "./Fields.ts"
import type { Publication, Reason } from "./Message.ts"
import type { Type } from "./Settings.ts"

/** Why a message is returned: its consumer failed, or released it, or its channel has ended. */
export type Return = "failed" | "released" | "ended"

/** The source of an entry: a publication, or an entry that another queue has given up. */
export type Origin =
  | { readonly _tag: "Published"; readonly publication: Publication }
  | { readonly _tag: "GivenUp"; readonly entry: Entry }

/** A change of an entry. */
export type Fact =
  | { readonly _tag: "Stored"; readonly queue: string; readonly entry: Entry; readonly origin: Origin }
  /** `client` is the name of the connection's client. */
  | { readonly _tag: "HandedOut"; readonly queue: string; readonly entry: Entry; readonly client: string }
  /** `due`: the queue delays it until then. */
  | {
      readonly _tag: "Back"
      readonly queue: string
      readonly entry: Entry
      readonly how: Return
      readonly due: number
    }
  | {
      readonly _tag: "Gone"
      readonly queue: string
      readonly entry: Entry
      readonly why: "settled" | "purged" | "deleted" | Reason
    }

/** The declaration of a queue. */
export interface Declaration {
  readonly name: string
  readonly type: Type
  readonly arguments: Fields.Table
  readonly isDurable: boolean
  readonly isAutoDelete: boolean
  /** The connection that alone may use it. Default: none. */
  readonly owner: object | undefined
}
