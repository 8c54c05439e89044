/**
 * The hosts by whose names the console is reached. Another name that leads to the same address is that of a page that wants to
 * read it: DNS rebinding.
 */

const nameOf = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d{1,5}$/, "")
    .replace(/\.$/, "")

/** Whether a host, with a port or without, is this machine: its name, or an address of its own, as no name of a page can be. */
export const isLoopback = (host: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/.test(nameOf(host))

/** Whether a socket's address is this machine. */
export const isLoopbackAddress = (address: string): boolean =>
  address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(address)

/** Whether a host may be served: one of those that are listed, with any port where the list names none; else this machine. */
export const isAllowed = (host: string, allowed: ReadonlyArray<string> | undefined): boolean =>
  allowed === undefined
    ? isLoopback(host)
    : allowed.some((each) => [host.toLowerCase(), nameOf(host)].includes(each.toLowerCase()))

/** The host that a request was sent to. */
export const of = (request: Request): string => request.headers.get("host") ?? new URL(request.url).host
