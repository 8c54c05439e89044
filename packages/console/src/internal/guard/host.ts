/**
 * The hosts by whose names the console is reached. Another name that leads to the same address is that of a page that wants to
 * read it: DNS rebinding.
 */

/** The names and addresses of this machine alone. */
const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Whether a host, with a port or without, is this machine. */
export const isLoopback = (host: string): boolean => loopback.has(nameOf(host))

/** Whether a socket's address is this machine. */
export const isLoopbackAddress = (address: string): boolean =>
  address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(address)

const nameOf = (host: string): string => host.toLowerCase().replace(/:\d{1,5}$/, "")

/** Whether a host may be served: one of those that are listed, with any port where the list names none. */
export const isAllowed = (host: string, allowed: ReadonlyArray<string>): boolean =>
  allowed.some((each) => [host.toLowerCase(), nameOf(host)].includes(each.toLowerCase()))

/** All names of this machine. */
export const ofThisMachine: ReadonlyArray<string> = [...loopback]

/** The host that a request was sent to. */
export const of = (request: Request): string => request.headers.get("host") ?? new URL(request.url).host
