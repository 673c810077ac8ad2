/** The keys, as the help screen and `--help` have them. */
export const keyHelp: readonly (readonly [keys: string, meaning: string] | readonly [heading: string])[] = [
  ['Tree'],
  ['↑ ↓  k j', 'one line; PgUp PgDn a screen, Ctrl-U Ctrl-D half of one, Home End to the ends'],
  ['→  l', 'open a directory, then go into it; show a resource'],
  ['←  h', 'close a directory, or go to the one above'],
  ['Enter', 'open or close a directory; go to the preview of a resource'],
  ['/', 'filter the names of all that is open, as you type; Esc takes the filter away'],
  ['s', 'search the texts, where a search is mounted; S goes back to what was found'],
  ['g', 'go to a URI, or a path of this machine'],
  ['t', 'show what was found, or is in the basket, in the tree'],
  ['y', 'copy the URI'],
  ['r', 'read and list anew'],
  ['Preview'],
  ['Tab', 'to the preview, and back'],
  ['J K', 'scroll the preview from the tree'],
  ['Basket'],
  ['Space', 'put into the basket, or take out; a directory: all below it'],
  ['b', 'show the basket, and go back'],
  ['← →', 'in the basket: less or more of a resource: link, outline, full'],
  ['+ -', 'double or halve the budget of tokens'],
  ['f', 'the format: markdown, xml, json'],
  ['e', 'write the basket to a file'],
  ['Other'],
  ['●', 'has changed since you looked at it'],
  ['Esc', 'one step back'],
  ['Ctrl-L', 'draw the screen anew; Ctrl-Z puts it aside (fg brings it back)'],
  ['q', 'end; what is in the basket can be written or printed first; Ctrl-C ends at once'],
]

export const helpHeight = keyHelp.length

/** The keys as lines of text. */
export function helpLines(): readonly string[] {
  return keyHelp.map(([keys, meaning]) => (meaning === undefined ? `${keys}:` : `  ${keys.padEnd(10)}${meaning}`))
}
