/** Activity: the open calls of each process at its port. Servers do not know them: they see the calls of a driver. */

/** A call of the port. `remove` is a browser's; `browse` lasts as long as the browser. */
export type What = "settle" | "extend" | "remove" | "purge" | "publish" | "browse"

/** The open calls of all processes. */
export interface Activity {
  /** A call begins, on these deliveries, or for `publish` these keys. The result ends it. */
  readonly begin: (what: What, process: string, on?: ReadonlyArray<number>) => () => void
  /** Whether such a call on this delivery or key is open; without one, on any. */
  readonly has: (what: What, process: string, on?: number) => boolean
}

/** No call is open. */
export const make = (): Activity => {
  const open = new Map<string, number>()
  const nameOf = (what: What, process: string, on: number | undefined): string => `${what} ${process} ${on ?? ""}`
  const add = (name: string, by: number): void => void open.set(name, (open.get(name) ?? 0) + by)
  return {
    begin: (what, process, on = []) => {
      const names = [undefined, ...on].map((each) => nameOf(what, process, each))
      for (const name of names) add(name, 1)
      return () => {
        for (const name of names) add(name, -1)
      }
    },
    has: (what, process, on) => (open.get(nameOf(what, process, on)) ?? 0) > 0
  }
}
