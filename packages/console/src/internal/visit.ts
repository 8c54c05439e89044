/** A request for a page, and its answer. */
import type { Action } from "../Authorization.ts"
import type { Html } from "./html.ts"
import type { Paths, Place } from "./paths.ts"
import type * as Shown from "./shown.ts"
import type { Job } from "./work/job.ts"

/** The visit of an operator to a page. */
export interface Visit {
  readonly paths: Paths
  readonly operator: string
  readonly may: ReadonlySet<Action>
  /** The token that forms of the page must have. */
  readonly token: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Returns a cause as operators may see it. */
  readonly shown: <A extends Shown.Cause>(cause: A, place: Place) => A
  /** Returns the id of a letter as operators may see it. */
  readonly shownId: (id: string, place: Place) => string
}

/** A page without its frame. */
export interface Page {
  readonly title: string
  readonly body: Html
  /** Whether the page changes while it is open. Without a script, the browser reloads such a page. */
  readonly isLive?: boolean
}

/** A changing part of a page: all its HTML, or its elements by their ids. `isOver` is true after the last change. */
export type State = { readonly isOver: boolean } & (
  | { readonly body: Html }
  | { readonly parts: ReadonlyMap<string, Html> }
)

/** Reads a changing part of a page at a time, in milliseconds since the epoch. */
export interface Live {
  readonly read: (now: number) => State
}

/** A file that is written while the browser reads it. */
export interface Download {
  readonly name: string
  readonly body: ReadableStream<Uint8Array>
}

/** The answer to a visit. */
export type Reply =
  /** The status is 200 by default. */
  | { readonly page: Page; readonly status?: 400 }
  | { readonly to: string }
  | { readonly live: Live }
  | { readonly download: Download }

/** The query of a place. */
export const queryOf = ({ broker, filter, queue }: Place): Readonly<Record<string, string>> => ({
  broker,
  queue,
  ...filter
})

/** The query of a job. */
export const jobQuery = ({ id }: Pick<Job, "id">): Readonly<Record<string, string>> => ({ id })
