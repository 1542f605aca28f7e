/** How requests end and why they are denied. The labels of metrics are made from these lists. */
#ifndef INFERD_API_CORE_OUTCOME_H
#define INFERD_API_CORE_OUTCOME_H

/** X(id, label). */
#define IFD_OUTCOMES(X)                                                                            \
    X(OK, "ok")                                                                                    \
    X(CLIENT_ERROR, "client_error") /* the request was wrong or names something unknown */         \
    X(SHED, "shed") /* refused: too much load, a newer frame, not ready, stopping, no memory */    \
    X(TIMEOUT, "timeout") /* its time ran out before it was received or before it ran */           \
    X(FAILED, "failed")   /* the server's fault */                                                 \
    X(ABORTED, "aborted") /* the client left before it had its answer */

#define X(id, label) IFD_OUTCOME_##id,
enum ifd_outcome { IFD_OUTCOMES(X) };
#undef X

/** X(id, label): verdicts that deny a request. */
#define IFD_DENIALS(X)                                                                             \
    X(NO_TOKEN, "no_token")           /* the request has none */                                   \
    X(UNKNOWN_TOKEN, "unknown_token") /* the server does not know it */                            \
    X(OTHER_CLASS, "class")           /* the token is known, but not for this class */             \
    X(OTHER_MODEL, "model")           /* the token is known, but not for this model */

#define X(id, label) IFD_VERDICT_##id,
enum ifd_verdict { IFD_VERDICT_GRANTED, IFD_DENIALS(X) IFD_VERDICT_COUNT };
#undef X

#endif
