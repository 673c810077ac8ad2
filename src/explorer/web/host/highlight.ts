export const mostHighlighted = 0

/** In a host, text has no colours, because highlighting needs a worker, which the policy of the host forbids. */
export const highlight: typeof import('../preview/highlight.ts').highlight = async () => undefined
