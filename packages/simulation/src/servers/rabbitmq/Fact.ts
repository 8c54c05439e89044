/** The declaration of a queue, and what becomes of its messages. */
import type { Entry } from "./Entry.ts"
import type * as Fields from "./Fields.ts"
import type { Reason } from "./Message.ts"
import type { Type } from "./Settings.ts"

/** Why a message is returned: its consumer failed, or released it. */
export type Return = "failed" | "released"

/** A change of an entry. */
export type Fact =
  | { readonly _tag: "Stored" | "HandedOut" | "Back"; readonly queue: string; readonly entry: Entry }
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
