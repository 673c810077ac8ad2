export const mostHighlighted = 0

/** In a host, text has no colours: they need a worker, which its policy forbids. */
export const highlight: typeof import('../preview/highlight.ts').highlight = async () => undefined
