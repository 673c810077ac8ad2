/** In a host, formulas and diagrams stay as their source: drawing them needs workers. */
export const draw: typeof import('../preview/drawn.ts').draw = async () => {}
