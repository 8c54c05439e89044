/**
 * The addresses of pages, below the path where the console is mounted. Names of queues are in the query, where no name, such as
 * `..`, has a special meaning.
 */

/** A dead-letter queue on a broker, or its letters that pass a filter. */
export interface Place {
  readonly broker: string
  readonly queue: string
  /** The filter, as fields of an address. Default: all letters. */
  readonly filter?: Readonly<Record<string, string>> | undefined
}

/** The paths of routes, below the base. */
export const routes = {
  overview: "/",
  queue: "/queue",
  deadLetters: "/dead-letters",
  look: "/look",
  group: "/group",
  letter: "/letter",
  plan: "/plan",
  redrive: "/redrive",
  purge: "/purge",
  export: "/export",
  delayed: "/delayed",
  purgeDelayed: "/purge-delayed",
  stop: "/stop",
  park: "/park",
  edit: "/edit",
  preview: "/edit/preview",
  send: "/edit/send",
  jobs: "/jobs",
  job: "/job",
  events: "/events",
  liveEvents: "/live/events",
  liveLook: "/live/look",
  liveJob: "/live/job",
  liveOverview: "/live/overview",
  assets: "/assets/"
} as const

/** The addresses of pages. */
export interface Paths {
  /** The base, without a slash at its end; empty at the root. */
  readonly base: string
  /** Returns the address of a route, with a query. */
  readonly to: (route: keyof typeof routes, query?: Readonly<Record<string, string>>) => string
  /** Returns the address of an asset. */
  readonly asset: (name: string) => string
}

/**
 * Whether a text is a valid base: nothing, or segments of letters, digits, `.`, `_`, `~` and `-`, each after a slash.
 */
export const isBase = (text: string): boolean => /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)*\/?$/.test(text)

/** The addresses under a base. */
export const make = (base: string): Paths => {
  const root = base.replace(/\/$/, "")
  return {
    base: root,
    to: (route, query = {}) => {
      const search = new URLSearchParams(query).toString()
      return `${root}${routes[route]}${search === "" ? "" : `?${search}`}`
    },
    asset: (name) => `${root}${routes.assets}${name}`
  }
}
