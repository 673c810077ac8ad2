/** In a host, the page stores nothing in the browser. */
export const readKept: typeof import('../state/kept.ts').readKept = () => null

export const keep: typeof import('../state/kept.ts').keep = () => {}
