/** In a host there is no room for the facets of the tree. The search has facets. */
export const FacetsBar: typeof import('../tree/facets-bar.tsx').FacetsBar = () => <></>
