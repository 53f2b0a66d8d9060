//! One place for a request: HTTP/1.1 has one on each connection, HTTP/2 as many as it may have streams.

use super::connection::{Request, Search};
use super::http2::stream::Stream;
use super::requests::Requests;
use super::response::Response;
use super::user::User;

/// A place for a request, and the user who sends one after the other there.
#[derive(Debug)]
pub(super) struct Lane {
    /// The connection that it belongs to.
    pub(super) connection: usize,
    pub(super) user: User,
    /// The request under way.
    pub(super) request: Option<Request>,
    pub(super) response: Response,
    /// For the texts that matter in its body, as many as any request has.
    pub(super) searches: Vec<Search>,
    /// The stream of the request, where it has one.
    pub(super) stream: Stream,
}

impl Lane {
    pub(super) fn new(connection: usize, user: User, requests: &Requests) -> Self {
        let mut response = Response::new(false);
        if requests.keep_cookies() {
            response.keep_cookies();
        }
        let texts = requests.messages().iter().map(|one| one.texts.len()).max();
        let texts = texts.unwrap_or(0);
        Self {
            connection,
            user,
            request: None,
            response,
            searches: (0..texts).map(|_| Search::default()).collect(),
            stream: Stream::default(),
        }
    }

    /// Makes room for the response to its user's request.
    #[inline]
    pub(super) fn expect_response(&mut self, requests: &Requests) {
        self.response.reset(self.user.message(requests).to_head);
        self.searches.iter_mut().for_each(Search::reset);
    }
}
