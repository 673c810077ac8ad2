/** In a host there is no room for facets of the tree: the search has some. */
export const FacetsBar: typeof import('../tree/facets-bar.tsx').FacetsBar = () => <></>
