/** Checks the hosts that requests name. Another name for the console's address is an attack by DNS rebinding. */

const nameOf = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d{1,5}$/, "")
    .replace(/\.$/, "")

/** Whether a host, with or without a port, is this machine: its name, or its loopback address. */
export const isLoopback = (host: string): boolean =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/.test(nameOf(host))

/** Whether the address of a socket is this machine. */
export const isLoopbackAddress = (address: string): boolean =>
  address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(address)

/**
 * Whether the console may serve a host. It serves the listed hosts, with any port if the list names none. Without a list,
 * it serves this machine.
 */
export const isAllowed = (host: string, allowed: ReadonlyArray<string> | undefined): boolean =>
  allowed === undefined
    ? isLoopback(host)
    : allowed.some((each) => [host.toLowerCase(), nameOf(host)].includes(each.toLowerCase()))

/** Returns the host that a request was sent to. */
export const of = (request: Request): string => request.headers.get("host") ?? new URL(request.url).host
