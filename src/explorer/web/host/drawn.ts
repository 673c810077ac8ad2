/** In a host, formulas and diagrams are shown as their source, because drawing them needs workers. */
export const draw: typeof import('../preview/drawn.ts').draw = async () => {}
