// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// @notice The terms of an invoice. Its id commits to every field.
/// @param merchant Settlement address, which receives the payment.
/// @param token ERC-20 contract the invoice is paid in.
/// @param amount Amount due, in the token's minor units.
/// @param expiresAt Unix seconds; a payment in a block with this timestamp is in time.
/// @param salt keccak256 of the invoice's off-chain id, so that equal terms get different ids.
struct Terms {
    address merchant;
    address token;
    uint256 amount;
    uint64 expiresAt;
    bytes32 salt;
}

/// @notice The only call of EIP-3009 that the registry makes.
interface IERC3009 {
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;
}

/// @title Quittance invoice registry
/// @notice Logs the invoices that an operator issues and ends, and accepts only one payment of each, before it expires.
/// @dev Money goes from payer to merchant in one transfer; the registry never holds any. An id is computed from the
/// terms, so a payment need not wait until the operator's `open` is mined. Storage holds only what a payment depends
/// on: that an invoice is paid, or was closed before it expired. An invoice is open if Opened was logged for it and it
/// is not paid, closed or expired.
contract InvoiceRegistry is AccessControl, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    /// @notice The stored state of an invoice. Paid and Closed are final. Closed is stored if it was closed before it
    /// expired.
    enum Status {
        None,
        Paid,
        Closed
    }

    /// @notice The role that opens and closes invoices.
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    /// @notice The stored state of an invoice; None for an invoice that can be paid until it expires.
    mapping(bytes32 id => Status) public statusOf;

    /// @notice The operator issued the invoice.
    event Opened(bytes32 indexed id);

    /// @notice The operator ended the invoice: it is closed in storage, or has expired according to the operator.
    event Closed(bytes32 indexed id);

    /// @notice The invoice was paid. The log follows the token's Transfer in the same transaction.
    event Paid(
        bytes32 indexed id, address indexed payer, address indexed merchant, address token, uint256 amount
    );

    /// @notice The invoice is already paid.
    error AlreadyPaid(bytes32 id);

    /// @notice The operator has closed the invoice.
    error InvoiceClosed(bytes32 id);

    /// @notice The block's timestamp is after the invoice's expiry.
    error InvoiceExpired(bytes32 id, uint64 expiresAt);

    /// @notice The amount of the terms is zero.
    error ZeroAmount();

    /// @notice The merchant's balance did not grow by exactly the amount due: the token takes a fee or reports a false
    /// balance, or the merchant pays itself.
    error WrongAmountReceived(uint256 balanceBefore, uint256 balanceAfter, uint256 amount);

    /// @param admin May grant and revoke the operator role.
    /// @param operator May open and close invoices from the start.
    constructor(address admin, address operator) {
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _grantRole(OPERATOR_ROLE, operator);
    }

    /// @notice The id of an invoice with these terms, only on this chain and in this registry.
    function idOf(Terms calldata t) public view returns (bytes32) {
        return keccak256(
            abi.encode(block.chainid, address(this), t.merchant, t.token, t.amount, uint256(t.expiresAt), t.salt)
        );
    }

    /// @notice Logs that invoices were issued.
    function open(bytes32[] calldata ids) external onlyRole(OPERATOR_ROLE) {
        for (uint256 i = 0; i < ids.length; ++i) {
            emit Opened(ids[i]);
        }
    }

    /// @notice Closes invoices, opened or not, so that they can no longer be paid through the registry.
    /// @param expiresAt The latest expiry of these invoices. The registry trusts the operator for it.
    /// @dev After the expiry a payment is refused anyway, so the state is not stored. Before it, a paid or closed
    /// invoice is skipped, so that it cannot make its batch fail.
    function close(bytes32[] calldata ids, uint64 expiresAt) external onlyRole(OPERATOR_ROLE) {
        bool expired = block.timestamp > expiresAt;
        for (uint256 i = 0; i < ids.length; ++i) {
            bytes32 id = ids[i];
            if (!expired) {
                if (statusOf[id] != Status.None) continue;
                statusOf[id] = Status.Closed;
            }
            emit Closed(id);
        }
    }

    /// @notice Pays an invoice from the caller's allowance to the registry.
    function pay(Terms calldata t) external nonReentrant {
        _payFromAllowance(t);
    }

    /// @notice Pays an invoice with the caller's EIP-2612 permit over exactly its amount.
    /// @dev A permit is public once sent, and anyone may submit it first, which uses it up. Only the resulting
    /// allowance matters, so a refused permit is not an error.
    function payWithPermit(Terms calldata t, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external nonReentrant {
        try IERC20Permit(t.token).permit(msg.sender, address(this), t.amount, deadline, v, r, s) {} catch {}
        _payFromAllowance(t);
    }

    /// @notice Pays an invoice with the payer's EIP-3009 authorization to the merchant, which has the invoice's id as
    /// its nonce. Anyone may send it: the signature allows this one transfer and no other.
    /// @param from The payer, who signed the authorization.
    function payWithAuthorization(
        Terms calldata t,
        address from,
        uint256 validAfter,
        uint256 validBefore,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external nonReentrant {
        bytes32 id = _markPaid(t);
        uint256 balance = IERC20(t.token).balanceOf(t.merchant);
        IERC3009(t.token).transferWithAuthorization(
            from, t.merchant, t.amount, validAfter, validBefore, id, v, r, s
        );
        _confirm(id, t, from, balance);
    }

    function _payFromAllowance(Terms calldata t) private {
        bytes32 id = _markPaid(t);
        uint256 balance = IERC20(t.token).balanceOf(t.merchant);
        IERC20(t.token).safeTransferFrom(msg.sender, t.merchant, t.amount);
        _confirm(id, t, msg.sender, balance);
    }

    /// @dev Checks the terms and records the payment before any token is called.
    function _markPaid(Terms calldata t) private returns (bytes32 id) {
        if (t.amount == 0) revert ZeroAmount();
        id = idOf(t);
        Status status = statusOf[id];
        if (status == Status.Paid) revert AlreadyPaid(id);
        if (status == Status.Closed) revert InvoiceClosed(id);
        if (block.timestamp > t.expiresAt) revert InvoiceExpired(id, t.expiresAt);
        statusOf[id] = Status.Paid;
    }

    /// @dev Checks balances, not the token's return value. The smaller balance is subtracted from the larger, so that a
    /// token that shrinks the balance also causes the named error.
    function _confirm(bytes32 id, Terms calldata t, address payer, uint256 balanceBefore) private {
        uint256 balanceAfter = IERC20(t.token).balanceOf(t.merchant);
        if (balanceAfter < balanceBefore || balanceAfter - balanceBefore != t.amount) {
            revert WrongAmountReceived(balanceBefore, balanceAfter, t.amount);
        }
        emit Paid(id, payer, t.merchant, t.token, t.amount);
    }
}
