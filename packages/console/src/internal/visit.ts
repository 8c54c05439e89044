/** A request that is served: who it is, what they may do, and what they ask for. */
import type { Action } from "../Authorization.ts"
import type { Html } from "./html.ts"
import type { Paths, Place } from "./paths.ts"
import type * as Shown from "./shown.ts"
import type { Job } from "./work/job.ts"

/** A visit, as pages see it. */
export interface Visit {
  readonly paths: Paths
  readonly operator: string
  readonly may: ReadonlySet<Action>
  /** The token of forms. */
  readonly token: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** A cause as people may see it. */
  readonly shown: <A extends Shown.Cause>(cause: A, place: Place) => A
  /** The id of a letter as people may see it. */
  readonly shownId: (id: string, place: Place) => string
}

/** A page without its frame. */
export interface Page {
  readonly title: string
  readonly body: Html
  /** Whether it changes by itself, so that it is loaded again where there is no script. */
  readonly isLive?: boolean
}

/** A part of a page that changes: all of it, or elements in it by their ids. `isOver` when it changes no more. */
export type State = { readonly isOver: boolean } & (
  | { readonly body: Html }
  | { readonly parts: ReadonlyMap<string, Html> }
)

/** A part of a page that changes, as it is at a time, in milliseconds since the epoch. */
export interface Live {
  readonly read: (now: number) => State
}

/** A file that is made while it is read. */
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
