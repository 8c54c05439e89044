/** Tokens name the leases of messages. */

/** Random tokens are less than this. */
export const maxToken = 2_000_000_000

/** A token that no earlier delivery had, even if a restored backup or a standby lost that delivery's row and reused its number. */
export const anyToken = `floor(random() * ${maxToken})::integer`
