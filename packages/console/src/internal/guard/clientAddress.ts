/**
 * Finds the client of a request, for rate limits: the address of the request's socket, or the address that a trusted proxy
 * reports.
 */
import { BlockList, isIP, isIPv6 } from "node:net"

/** Headers that proxies add. A request with one of them comes through a proxy, so it may not come from this machine. */
const forwarding = ["forwarded", "via", "x-real-ip"]

/** Whether a request has the header of a proxy. */
export const isForwarded = (headers: Headers): boolean =>
  [...headers.keys()].some((name) => forwarding.includes(name) || name.startsWith("x-forwarded-"))

/** Returns an address without its zone, its port and the prefix of IPv4 in IPv6. */
const plain = (address: string): string =>
  address
    .trim()
    .replace(/^\[(.*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
    .replace(/%.*$/, "")
    .replace(/^::ffff:(?=\d+\.)/i, "")

/** Returns the network of an address, because a client of IPv6 has 2^64 addresses. */
const networkOf = (address: string): string => {
  if (!isIPv6(address)) return address
  const [before = [], behind = []] = address.split("::").map((part) => part.split(":").filter(Boolean))
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - behind.length) }, () => "0")
  return [...before, ...zeros, ...behind]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")
}

const family = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4")

/** Whether a text is an address, or a network such as `10.0.0.0/8`. */
export const isNetwork = (text: string): boolean => {
  const [address = "", bits, ...more] = text.split("/")
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  return most > 0 && more.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
}

/**
 * Makes a function that finds the client of a request: the last address in `X-Forwarded-For` that is not one of these
 * proxies.
 */
export const make = (proxies: ReadonlyArray<string>) => {
  const trusted = new BlockList()
  for (const each of proxies) {
    const [address = "", bits] = each.split("/")
    if (bits === undefined) trusted.addAddress(address, family(address))
    else trusted.addSubnet(address, Number(bits), family(address))
  }
  const isTrusted = (address: string) => isIP(address) > 0 && trusted.check(address, family(address))
  return (socket: string, headers: Headers): string => {
    const told = (headers.get("x-forwarded-for") ?? "").split(",").map(plain)
    let client = plain(socket)
    while (isTrusted(client) && isIP(told.at(-1) ?? "") > 0) client = told.pop()!
    return networkOf(client)
  }
}
